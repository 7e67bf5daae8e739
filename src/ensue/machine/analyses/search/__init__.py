"""The search through all situations of one correlation, or of two side by side."""
