"""Compiled loops over the bytes of events.

A loop only marks a row that it cannot read: such a row is read singly by other code, which finds
the reason.
"""
