"""Bounded input: jobs over DataFrames, lists of events and files."""
