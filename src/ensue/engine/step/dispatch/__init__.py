"""What is generated for an event type: which rules read an event, found by tests that run once.

`type_tests` has the tests that ports ask, `plans` which rules read an event by the tests that hold;
`asking`, `predicates` and `routine_text` write the Python of the tests, `routines` compiles it into
the functions that events of the type go through, and `values` reads events that are not plain.
"""
