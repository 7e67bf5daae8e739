"""Ensue finds what follows from what."""
