"""One rule event by event, in Python: its instances by key, and what they put out.

`rules` has the rule, `rows` its table and its places, `windows` its machine where it has a window,
`filters` and `ecl` its instances. When a branch fires, `recipes` has its statements, and `firing`
and `emitting` generate the function that builds the outputs. Filters that relate events are in
`ensue.engine.core.relating`. The step engine runs rules this way where they are few, the batch
engine where a rule has no form in columns.
"""
