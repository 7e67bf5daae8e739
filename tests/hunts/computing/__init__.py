"""Hunts that compute, and wait for nothing."""
