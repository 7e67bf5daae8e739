"""From filters and ECL expressions to machines."""
