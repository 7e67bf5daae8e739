"""Hunts in which Spark runs."""
