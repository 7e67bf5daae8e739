"""How events are made, checked, read and written."""
