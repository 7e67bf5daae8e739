"""One rule event by event, in Python: its instances by key, and what they put out.

`rules` has the rule, `rows` its table, `windows` its machine where it has a window, `filters` and
`ecl` its instances, `places` and `firing` what is bound and what follows when a branch fires. The
step engine runs rules this way where they are few, the batch engine where a rule has no form in
columns.
"""
