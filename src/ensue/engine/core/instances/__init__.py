"""One rule event by event, in Python: its instances by key, and what they put out.

`rules` has the rule, `rows` its table, `filters` and `ecl` its instances. When a branch fires,
`firing` builds the outputs. Filters that relate events are in `ensue.engine.core.relating`. The
step engine runs rules this way where they are few, the batch engine where a rule has no form in
columns.
"""
