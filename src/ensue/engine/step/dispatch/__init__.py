"""What is generated for an event type: which rules read an event, found by tests that run once.

`type_tests` has the tests that ports ask, `plans` what follows from the tests that hold, `readings`
what an event is to rules in cells; `asking`, `predicates` and `routine_text` write the Python of
the tests, and `routines` compiles it into the functions that events of the type go through.
"""
