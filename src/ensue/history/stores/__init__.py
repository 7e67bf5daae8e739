"""The stores of a history, side by side: what each is for, and its price.

`memory` is for tests, replays and short pasts: the quickest, and gone with its process. `sql` keeps
publications in tables (`schema`, `statements`) of SQLite, PostgreSQL or MariaDB: as much as a disk
holds, shared between processes. `parquet` keeps files that Spark reads, with an index of SQLite.
`opening` finds the one that an address names, and imports no other.
"""
