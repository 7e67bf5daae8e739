"""Brings a history of an older format into this one, when it is opened.

Formats 1 and 2 had their publications and keys in other tables, a row for each key of each
publication. Publications keep their numbers and their bodies (CloudEvents in format 1, which are
read as ever), so that whatever refers to a number still does. All of it is one transaction.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import Any, Final

from sqlalchemy import Connection, bindparam, column, inspect, select, table, text, update

from ensue.history.stores import blocks, schema
from ensue.history.stores.rows import half_of, insert_rows, stored

PAGE: Final = 5_000
_OLD: Final = table(
    "ensue_publications", *(column(each.name, each.type) for each in schema.publications.c)
)
_ROWS: Final = select(_OLD).where(_OLD.c.seq > bindparam("after")).order_by(_OLD.c.seq).limit(PAGE)


def migrate(connection: Connection) -> None:
    if inspect(connection).has_table(_OLD.name):
        after = 0
        while rows := connection.execute(_ROWS, {"after": after}).fetchall():
            _move(connection, [tuple(row) for row in rows])
            after = rows[-1].seq
        for name in (_OLD.name, "ensue_postings"):
            connection.execute(text(f"DROP TABLE {name}"))
    connection.execute(update(schema.state), [{"format": schema.FORMAT}])


def _move(connection: Connection, rows: list[tuple[Any, ...]]) -> None:
    entries: defaultdict[bytes, list[int]] = defaultdict(list)
    identities: list[tuple[int, int]] = []
    for seq, identity, start, start_until, finish, finish_until, _, body in rows:
        identities.append((half_of(bytes(identity)), seq))
        row = stored((seq, identity, start, start_until, finish, finish_until, body))
        for key in row.keys:
            entries[key].append(seq)
    insert_rows(connection, schema.publications, list(chain.from_iterable(rows)))
    insert_rows(connection, schema.identities, list(chain.from_iterable(sorted(identities))))
    insert_rows(connection, schema.postings, list(chain.from_iterable(blocks.rows_of(entries))))
