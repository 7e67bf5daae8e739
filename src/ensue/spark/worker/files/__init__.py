"""Files that a worker reads: their parts, lines and places, and whole files."""
