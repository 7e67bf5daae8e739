"""How the command begins and ends: which commands there are, read options, a quick process."""
