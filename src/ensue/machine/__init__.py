"""Correlation machines: what a rule becomes before it runs.

`building` makes a machine from a syntax tree, `passes` make it smaller, `plan` chooses the form in
which a rule runs. `stepping` takes a machine through events, `determinise` makes the entries of its
table that a stream needs, and `tables` is a library with its machines as bytes. `analyses` answer
questions about rules, `drawing` makes pictures. Nothing here reads a stream or holds the state of a
run: that is `ensue.engine`.
"""
