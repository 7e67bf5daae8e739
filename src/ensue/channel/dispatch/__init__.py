"""Dispatching strategies: which consumer gets the next turn, and in which thread."""
