"""Files of events in columns: chunks of rows, in bounded memory.

`chunk` defines a chunk. `text` makes chunks of JSON lines and of CSV, `tables` of Parquet and
Arrow. A row that columns cannot represent is marked, and read singly by the code that reads files
record by record (`ensue.events.records`), so that the same records are refused with the same
problems. The engine that reads a chunk checks whether values fit their types. `reading` reads files
one after the other, `ordered` and `sorting` their records in the order of times. `output` writes
files.
"""
