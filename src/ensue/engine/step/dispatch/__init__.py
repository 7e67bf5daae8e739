"""Which rules read an event of a type, found by tests that run once.

`plans` has the tests of ports, and the rules that read an event by the tests that hold. `routines`
has the functions that events of the type go through.
"""
