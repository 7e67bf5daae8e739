"""Clocks, the heap of callouts, and the timeouts of consumers."""
