"""Rules that relate events, as step and batch run them without looking back at every event.

`form` says which rules are chains of groups; `condition` and `having` make their conditions ready
to be asked: of columns and registers, and of single events. In Python, `linked` runs a chain by its
latest matches (`links`), `stretched` one that counts the events of a stretch, with aggregates that
follow it (`running`, `tallies`), and `branched` a filter of several chains.
"""
