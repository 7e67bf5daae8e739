"""The documentation, run: every snippet, and every table that repeats what the code says."""
