"""The laboratory: data, shortcuts, networks and learners that produce runs. Import its rooms by name."""
