"""The container: record a run, seal it, open it anywhere."""
