"""Rules that relate several events: a second, independent reading of their definitions."""
