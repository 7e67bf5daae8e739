"""Hunts for the tests of the runner: they find something on purpose."""
