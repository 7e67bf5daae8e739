"""Files of events, record by record: each record is an `Event`, or a `Rejected` that says why not.

`reading` reads files that have an end, `following` files that still grow; `parquet` has the tables.
One record of a text file is read in `text_record`, which other readers ask about a record that they
cannot read. `overlong` bounds a record, and `dead_letters` writes refused ones down.
"""
