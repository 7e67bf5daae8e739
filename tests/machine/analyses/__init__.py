"""Analyses of correlations: what they find, and that it is so."""
