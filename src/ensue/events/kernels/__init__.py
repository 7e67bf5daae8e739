"""Compiled loops over the bytes of events. Each says of a row that it cannot read it, never why:
such a row is read singly, by the code that explains itself."""
