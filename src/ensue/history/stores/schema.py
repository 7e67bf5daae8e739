"""The tables of a history in a database, in words that SQLite, PostgreSQL and MariaDB share.

The tables: publications, where each source and id is (`identities`, `recent`), their keys
(`postings`), the publications that were changed after they had been stored (`revisions`), and one
row of state that every writer locks first, so that the numbers of publications are given in the
order in which their writers commit. No column holds text: bytes compare alike in all three
databases, whatever their collations.

Most publications are instants. They end when they start, so that one index serves them, by span and
start; the indexes by start and by end are of the others only (in MariaDB, which has no indexes of
some rows, of all).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    text,
)
from sqlalchemy.dialects import mysql

from ensue.history.stores.blocks import LONGEST

FORMAT = 3
"""Raised with every change of what is written. A database of any other format is refused."""

metadata = MetaData()


# In SQLite an INTEGER that is the primary key is the number of the row, and needs no index.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")


def _bytes(length: int) -> Any:
    return LargeBinary(length).with_variant(mysql.VARBINARY(length), "mysql", "mariadb")


_INTERVALS = text("span > 0")

publications = Table(
    "ensue_events",
    metadata,
    Column("seq", _NUMBER, primary_key=True, autoincrement=False),
    Column("identity", _bytes(16), nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("start_until", BigInteger, nullable=False),
    Column("finish", BigInteger, nullable=False),
    Column("finish_until", BigInteger, nullable=False),
    Column("span", SmallInteger, nullable=False),
    Column(
        "body", LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb"), nullable=False
    ),
    Index("ensue_events_span", "span", "start"),
    Index("ensue_events_start", "start", sqlite_where=_INTERVALS, postgresql_where=_INTERVALS),
    Index("ensue_events_finish", "finish", sqlite_where=_INTERVALS, postgresql_where=_INTERVALS),
)


def _identities(name: str) -> Table:
    """Half of each identity, as a number; the whole of it stands with its publication."""
    return Table(
        name,
        metadata,
        Column("half", BigInteger, primary_key=True, autoincrement=False),
        Column("seq", BigInteger, primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )


identities = _identities("ensue_identities")
recent = _identities("ensue_recent")
"""Identities that came last. They come in no order, so that each would change a page of a large
index: they are moved into the other table slice by slice, each when many of it have come."""

postings = Table(
    "ensue_entries",
    metadata,
    Column("entry", _bytes(200), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("earlier", _bytes(LONGEST), nullable=False),
    sqlite_with_rowid=False,
)

revisions = Table(
    "ensue_revisions",
    metadata,
    Column("seq", _NUMBER, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False, index=True),
)

state = Table(
    "ensue_state",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("format", SmallInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("revised", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
    Column("floor", BigInteger, nullable=False),
    # One bit a span that has publications: for lengths, and for what has no certain length.
    Column("lengths", BigInteger, nullable=False),
    Column("others", SmallInteger, nullable=False),
)

OPEN_BIT, UNCERTAIN_BIT, OVERFLOW_BIT = 1, 2, 4
"""Bits of `others`: open intervals, uncertain ones, publications with more names than have keys."""
