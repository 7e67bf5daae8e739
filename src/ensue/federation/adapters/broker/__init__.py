"""Content-based brokers of this process (the paper's Siena)."""
