"""Outputs of a batch: from firings to tables, events and lines, in the order of the stream.

`firings` are what rules hand over, `remembered` has the events that they are bound to, and `build`
makes the outputs of one statement at once. `order` says where each output stands in the stream,
`columns` makes a table or events of all outputs in that order, with the columns of `schema`, and
`lines` makes JSON lines of them.
"""
