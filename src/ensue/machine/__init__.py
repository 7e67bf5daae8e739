"""Correlation machines: what a rule becomes before it runs.

`from_filter` and `from_ecl` build a machine from a syntax tree, `stepping` takes it through events,
`determinise` turns it into a table as far as a stream needs one. Nothing here reads events or
remembers a run: that is `ensue.engine`.
"""
