"""The statements of `SqlStore`, built of SQLAlchemy Core once for each shape.

What varies from call to call are values, which are filled in when a statement runs; a shape is a
kind of window, whether a page follows another, and which publications there are. What is run for
every event (`identified`, `insertion`) is text that a driver takes with values as they are. Nothing
is executed here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    Dialect,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    union_all,
    update,
)

from ensue.history.store import UNCERTAIN_SPAN, width_of
from ensue.history.stores import schema

_P: Final = schema.publications.c
_WIDEST: Final = 2**61


def _value(name: str) -> BindParameter[Any]:
    """A value that is filled in when a statement runs."""
    return bindparam(name)


COLUMNS: Final = (
    _P.seq,
    _P.identity,
    _P.start,
    _P.start_until,
    _P.finish,
    _P.finish_until,
    _P.body,
)
PLACES: Final = (_P.seq, _P.start, _P.finish)
"""Where a publication stands in every order, without its body."""
STATE: Final = select(schema.state)
REVISED: Final = [f"new_{each.name}" for each in schema.publications.c]
POSTED_BETWEEN: Final = (
    select(schema.postings.c.seq, schema.postings.c.earlier)
    .where(
        schema.postings.c.entry == _value("old_entry"),
        schema.postings.c.seq.between(_value("low"), _value("high")),
    )
    .order_by(schema.postings.c.seq)
)
UNPOST: Final = delete(schema.postings).where(
    schema.postings.c.entry == _value("old_entry"),
    schema.postings.c.seq == _value("old_seq"),
)
UNPOST_UP_TO: Final = delete(schema.postings).where(
    schema.postings.c.entry == _value("old_entry"),
    schema.postings.c.seq <= _value("old_seq"),
)
FORGET_IDENTITY: Final = [
    delete(each).where(each.c.half == _value("old_half"), each.c.seq == _value("old_seq"))
    for each in (schema.recent, schema.identities)
]
_MOVED: Final = schema.recent.c.half.between(_value("low"), _value("high"))
MOVE_RECENT: Final = (
    insert(schema.identities).from_select(
        ["half", "seq"],
        select(schema.recent).where(_MOVED).order_by(schema.recent.c.half, schema.recent.c.seq),
    ),
    delete(schema.recent).where(_MOVED),
)
ALL_HALVES: Final = [select(each.c.half) for each in (schema.recent, schema.identities)]
IDENTITIES_SINCE: Final = select(_P.identity).where(_P.seq > _value("since"))
DELETE: Final = delete(schema.publications).where(_P.seq == _value("old_seq"))
FORGET_REVISION: Final = delete(schema.revisions).where(schema.revisions.c.seq == _value("old_seq"))
REVISE: Final = (
    update(schema.publications)
    .where(_P.seq == _value("new_seq"))
    .values(
        {
            each.name: _value(f"new_{each.name}")
            for each in schema.publications.c
            if each.name != "seq"
        }
    )
)
REVISIONS: Final = (
    select(*COLUMNS)
    .join(schema.revisions, schema.revisions.c.seq == _P.seq)
    .where(schema.revisions.c.version > _value("since"))
)
OLDEST: Final = select(*COLUMNS).order_by(_P.seq).limit(_value("limit"))
_COUNTED: Final = (
    select(func.length(schema.postings.c.earlier).label("bytes"))
    .where(schema.postings.c.entry.between(_value("low"), _value("high")))
    .limit(_value("limit"))
    .subquery()
)
COUNT_POSTED: Final = select(
    func.count(), func.coalesce(func.sum(_COUNTED.c.bytes), 0)
).select_from(_COUNTED)
"""How many blocks a range has, and the bytes of their packed numbers."""


@lru_cache(maxsize=512)
def identified(table: Table, dialect: Dialect, count: int) -> str:
    """Numbers of publications by halves of their identities, for a driver."""
    return _listed(dialect, select(table.c.seq), table.c.half, count)


@lru_cache(maxsize=256)
def numbered(dialect: Dialect, count: int) -> str:
    """Publications of some numbers, for a driver."""
    return _listed(dialect, select(*COLUMNS), _P.seq, count)


def _listed(dialect: Dialect, query: Select[Any], column: Any, count: int) -> str:
    head, middle, _ = str(query.where(column.in_([])).compile(dialect=dialect)).partition(" IN ")
    return f"{head}{middle}({_marks(dialect, count)})"


@lru_cache(maxsize=64)
def insertion(table: Table, dialect: Dialect, rows: int) -> str:
    """An INSERT of some rows, in the order of the table's columns, for a driver."""
    head, middle, _ = str(insert(table).compile(dialect=dialect)).partition(" VALUES ")
    row = f"({_marks(dialect, len(table.c))})"
    return f"{head}{middle}{', '.join([row] * rows)}"


def _marks(dialect: Dialect, count: int) -> str:
    """Places of values that a driver fills by their order."""
    return ", ".join(["?" if dialect.paramstyle == "qmark" else "%s"] * count)


INSTANT: Final[Any] = literal_column("0")
"""The span of instants; written out, since an index of the other spans is chosen by it."""


class SpanParts(NamedTuple):
    """Which publications there are: some that end when they start, some that do not."""

    instants: bool
    intervals: bool


@lru_cache(maxsize=16)
def counted(kind: str, parts: SpanParts) -> Any:
    """How many lie in a window; the index alone tells, so uncertain ones are counted too."""
    limit = _value("limit")
    if kind == "uncertain":
        arms = [select(literal(1).label("one")).where(_P.span == UNCERTAIN_SPAN).limit(limit)]
    else:
        arms = [
            select(literal(1).label("one"))
            .where(condition, column.between(_value("low"), _value("high")))
            .limit(limit)
            for condition, column in _arms(kind, parts)
        ]
    counts = [select(func.count()).select_from(arm.subquery()).scalar_subquery() for arm in arms]
    return select(sum(counts[1:], counts[0])) if counts else select(literal(0))


def _arms(kind: str, parts: SpanParts) -> list[tuple[Any, Any]]:
    """Which publications a part of a window is of, and the column that it goes by."""
    arms = []
    if parts.instants:
        arms.append((_P.span == INSTANT, _P.start))
    if parts.intervals:
        arms.append((_P.span > INSTANT, _P.finish if kind == "ended" else _P.start))
    return arms


@lru_cache(maxsize=256)
def page(kind: str, is_next: bool, parts: SpanParts, columns: tuple[Any, ...] = COLUMNS) -> Any:
    """The statement for the next page of rows of a window."""
    seq, limit = _value("last_seq"), _value("limit")
    if kind in ("ended", "started"):
        return _timed_page(kind, is_next, parts, columns)
    query = select(*columns).limit(limit).order_by(_P.seq.desc())
    if kind == "uncertain":
        query = query.where(_P.span == UNCERTAIN_SPAN)
    return query.where(_P.seq < seq) if is_next or kind == "arrived" else query


def _timed_page(kind: str, is_next: bool, parts: SpanParts, columns: tuple[Any, ...]) -> Any:
    """By start, the earliest first, or by end, the latest first: one arm a kind of publication."""
    seq, limit = _value("last_seq"), _value("limit")
    is_down = kind == "ended"
    last = _value("last_finish" if is_down else "last_start")
    queries = []
    for condition, column in _arms(kind, parts):
        query = select(*columns).where(
            condition, _P.span != UNCERTAIN_SPAN, column.between(_value("low"), _value("high"))
        )
        if is_next and is_down:
            query = query.where(column <= last, or_(column < last, _P.seq < seq))
        elif is_next:
            query = query.where(column >= last, or_(column > last, _P.seq > seq))
        order = (column.desc(), _P.seq.desc()) if is_down else (column, _P.seq)
        queries.append(query.order_by(*order).limit(limit))
    if len(queries) == 1:
        return queries[0]
    merged = union_all(*(select(*each.subquery().c) for each in queries)).subquery().c
    by = merged.finish if is_down else merged.start
    whole = select(*(merged[each.name] for each in columns)).limit(limit)
    return (
        whole.order_by(by.desc(), merged.seq.desc()) if is_down else whole.order_by(by, merged.seq)
    )


@lru_cache(maxsize=256)
def overlapping(spans: tuple[int, ...], is_next: bool, columns: tuple[Any, ...] = COLUMNS) -> Any:
    """The intervals that hold an instant of the window, one span after the other."""
    arms = []
    for place, span in enumerate(spans):
        # The index narrows by the start; how much, the greatest length of the span says.
        width = _WIDEST if (greatest := width_of(span)) is None else greatest
        query = (
            select(*columns)
            .where(
                _P.span == span,
                _P.start <= _value("high"),
                _P.start >= _value("low") - literal(width),
                _P.finish >= _value("low"),
            )
            .order_by(_P.start.desc(), _P.seq.desc())
            .limit(_value("limit"))
        )
        if is_next and place == 0:
            last = _value("last_start")
            query = query.where(_P.start <= last, or_(_P.start < last, _P.seq < _value("last_seq")))
        arms.append(select(*query.subquery().c))
    return union_all(*arms).limit(_value("limit")) if len(arms) > 1 else arms[0]


@lru_cache(maxsize=8)
def blocks(is_point: bool) -> Select[Any]:
    """Blocks of a range of keys, those with the latest numbers first."""
    entries = schema.postings.c
    low = _value("low")
    key = entries.entry == low if is_point else entries.entry.between(low, _value("high"))
    return (
        select(entries.seq, entries.earlier)
        .where(key, entries.seq.between(_value("first_seq"), _value("last_seq")))
        .order_by(entries.seq.desc())
        .limit(_value("limit"))
    )
