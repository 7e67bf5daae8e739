"""Files of events, record by record: each record is an `Event`, or a `Rejected` that says why not.

`reading` reads files that have an end, `following` files that still grow; `parquet` reads Parquet
and Arrow files. `text_record` reads a single record of a text file, also for readers in columns
that cannot read it. `overlong` bounds the length of a record, and `dead_letters` writes refused
records.
"""
