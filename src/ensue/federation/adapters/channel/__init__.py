"""The event channel of this process."""
