"""Files of events in columns: chunks of rows, checked as far as columns show, in bounded memory.

`chunk` says what a chunk is. `lines` makes chunks of JSON lines and `cells` of CSV, both from where
values stand in a block of bytes (`ensue.events.kernels`); `tables` makes them of Parquet and Arrow.
A row that columns cannot show is marked, and read singly by the code that reads files row by row,
so that what is refused, and why, is the same. Whether values fit their types is asked by the engine
that takes the chunk. `sorting` puts the records of a file in the order of their times.
"""
