"""One rule by itself, over a batch.

`correlation` walks its events through the cells of its table, `linear` through the transitions of
its machine (by the loops of `linear_steps`) where the table grows too large, and `by_event` through
instances of the step engine where the rule has no form in columns.
"""
