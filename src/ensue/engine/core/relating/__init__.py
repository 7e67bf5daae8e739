"""Rules that relate events, as step and batch run them without looking back at every event.

`form` says which rules are chains of groups; `condition` and `having` make their conditions ready
to be asked: of columns and registers, and of single events.
"""
