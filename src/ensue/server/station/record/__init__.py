"""What outlives the process: journal, libraries and their states in it, and going on from there."""
