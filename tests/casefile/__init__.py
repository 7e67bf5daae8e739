"""Golden case files: reading, running, comparing, showing."""
