"""Files of events in columns: chunks of rows, checked as far as columns show, in bounded memory.

`chunk` says what a chunk is. `text` makes chunks of JSON lines and of CSV, `tables` of Parquet and
Arrow. A row that columns cannot show is marked, and read singly by the code that reads files row by
row (`ensue.events.records`), so that what is refused, and why, is the same. Whether values fit
their types is asked by the engine that takes the chunk. `reading` goes through files one after the
other, `ordered` and `sorting` through their records in the order of times. `output` writes files.
"""
