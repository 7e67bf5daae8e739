"""Rows of publications on their way into a database and out of it.

In come publications; out go values in the order of the columns of `schema`, and from rows that were
found, `Stored` again. Rows go to a driver as flat values, fifty to a statement, since every call of
it costs more than a row does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table

from ensue.history.bodies import body_of
from ensue.history.publication import Interval, Publication
from ensue.history.store import FOREVER, OPEN_SPAN, Stored, span_of
from ensue.history.stores import schema, statements

AT_ONCE: Final = 500
"""Values in one list of a statement; every database takes as many."""
_ROWS: Final = 50
"""Rows of one INSERT."""
SPAN: Final = list(schema.publications.c.keys()).index("span")
"""Where the span stands in a row."""


def insert_rows(connection: Connection, table: Table, values: list[Any]) -> None:
    """Rows one after the other, in the order of the table's columns, as a driver takes them."""
    begin = 0
    for rows in (_ROWS, 1):
        width = rows * len(table.c)
        stop = len(values) - (len(values) - begin) % width
        if stop > begin:
            connection.exec_driver_sql(
                statements.insertion(table, connection.dialect, rows),
                [tuple(values[at : at + width]) for at in range(begin, stop, width)],
            )
        begin = stop


class WindowPlace(NamedTuple):
    """Where a publication stands in the order of every window."""

    seq: int
    start: int
    finish: int

    @property
    def span(self) -> int:
        return OPEN_SPAN if self.finish == FOREVER else (self.finish - self.start).bit_length()


def place_of(row: Stored) -> WindowPlace:
    return WindowPlace(
        row.seq, row.times.start, FOREVER if row.times.end is None else row.times.end
    )


def half_of(key: bytes) -> int:
    """Half of an identity, which has sixteen bytes, as a number that a database has a place for."""
    return int.from_bytes(key[:8], signed=True)


def portions(values: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Values in lists that every database takes."""
    for begin in range(0, len(values), AT_ONCE):
        yield tuple(values[begin : begin + AT_ONCE])


def row_of(seq: int, publication: Publication) -> tuple[Any, ...]:
    """A row of publications, in the order of the columns."""
    start, start_until, end, end_until = publication.times
    return (
        seq,
        publication.key,
        start,
        start_until,
        FOREVER if end is None else end,
        FOREVER if end_until is None else end_until,
        span_of(publication.times),
        body_of(publication),
    )


def stored(row: Any) -> Stored:
    seq, identity, start, start_until, finish, finish_until, body = row
    if finish == FOREVER:
        finish = finish_until = None
    return Stored(
        seq, bytes(identity), Interval(start, start_until, finish, finish_until), bytes(body)
    )
