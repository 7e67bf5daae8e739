"""Parameters, uses and imports."""
