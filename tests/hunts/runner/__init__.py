"""How hunts run: the registry, the rounds of one hunt, and many hunts side by side."""
