"""One rule by itself, over a batch.

`correlation` walks its events through the cells of its table, and `by_event` runs a rule that has
no form in columns, or whose table grows too large, on instances.
"""
