"""Correlations on Spark."""
