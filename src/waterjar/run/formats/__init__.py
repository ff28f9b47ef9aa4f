"""Other layouts in and out of runs, one a file."""
