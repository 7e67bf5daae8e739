"""Trials on Spark: as many as can be in one job, and in one stream."""
