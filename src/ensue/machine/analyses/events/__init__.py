"""Kinds of events, as far as predicates can tell: values, their classes, alphabets of symbols.

`mentions` are the constants that predicates compare an attribute with, `values` a few values that
stand for all, `classes` the values that predicates cannot tell apart. `sampling` combines values to
events, and `alphabet` finds the ports and atoms of each event.
"""
