"""What a rule is when it runs, for every engine.

A machine becomes a table that grows with the states a stream visits (`rule_table`, over the moves
and timers of `machine_tables`; `effects` says what an entry puts out). Tables of many rules are
packed into one array (`packed`), and what a rule holds under a key is a *cell* (`cells`), which one
inlined step moves (`cell_step`), driven by a column of one rule, by events that visit many rules,
or by a clock (`cell_drivers`). `shapes` says which rules share a table and a pass. `instances` runs
one rule event by event in Python, and `relating` a rule that relates events; `predicates` asks
single events, and `saved_rules` is the state of such rules as plain data. Nothing here knows an
engine.
"""
