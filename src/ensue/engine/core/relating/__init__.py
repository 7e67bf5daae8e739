"""Rules that relate events, without a search through all remembered events.

`form` says which rules are chains of groups, and both engines ask it. The other modules run chains
in Python, event by event: `linked` from the latest matches (`links`), `stretched` with aggregates
over the events of a stretch (`sliding` in a window, `tallies` without one), and `branched` several
chains in one filter. `having` is the clause as Python over single events, `condition` the clause as
a program for compiled loops.
"""
