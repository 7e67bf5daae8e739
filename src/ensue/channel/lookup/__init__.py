"""What consumers want, and which of them want a given event."""
