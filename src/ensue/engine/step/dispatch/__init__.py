"""What is generated for an event type: which rules read an event, found by tests that run once.

`plans` has the tests of ports, and the rules that read an event by the tests that hold.
`predicates`, `predicate_lines` and `routine_text` write the tests as Python, and `routines`
compiles that into the functions that events of the type go through.
"""
