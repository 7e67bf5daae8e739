"""Events and their types, and the reading and writing of events.

A record of a file (`records`) is decoded (`cloudevents` for JSON, `columns` for tables, a user's
own names by `mapping`) and checked against its declared type (`types`, `conformance`): then it is
an `Event` whose values every engine can rely on. A record that cannot be read is kept as
`Rejected`, and never stops a stream. `sources` has the bytes of input files. Files in columns are
read by `files`, and written with the compiled loops of `kernels`; `arrow` has events as tables.
These are imported only where they are needed, since pyarrow is slow to import; this module imports
nothing for the same reason. This room knows nothing of correlations.
"""
