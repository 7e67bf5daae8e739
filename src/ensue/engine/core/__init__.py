"""What a rule is when it runs, for every engine.

A machine becomes a table that grows with the states a stream visits (`rule_table`, over the moves
of `bit_table` or, with a window, `window_table`; `timer_table` and `effects` say what an entry sets
and puts out). Tables of many rules are packed into one array (`packed`), and what a rule holds
under a key is a *cell* (`cells`), which one inlined step moves (`stepping`), driven by a column of
one rule, by events that visit many rules, or by a clock. `shapes` says which rules share a table
and a pass. `instances` runs one rule event by event in Python;
`saved` is the state of such rules as plain data. Nothing here knows an engine.
"""
