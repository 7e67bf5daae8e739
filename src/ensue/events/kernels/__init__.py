"""Compiled loops that write the bytes of events, and what all compiled loops share."""
