"""A report in a format: one a file. Each takes a `Report` and a path, and knows nothing of studies."""
