"""What is generated for an event type: which rules read an event, found by tests that run once.

`plans` has the tests that ports ask, and which rules read an event by the tests that hold;
`asking`, `predicates` and `routine_text` write the Python of the tests, `routines` compiles it into
the functions that events of the type go through.
"""
