"""The statements of `SqlStore`, built of SQLAlchemy Core once for each shape.

What varies from call to call are values, which are filled in when a statement runs; a shape is a
kind of window, whether a page follows another, the spans that there are, and how many keys a
clause has. What is run for every event (`by_keys`, `insertion`) is text that a driver takes with
values as they are. Nothing is executed here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    Dialect,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
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
STATE: Final = select(schema.state)
REVISED: Final = [f"new_{each.name}" for each in schema.publications.c]
UNPOST: Final = delete(schema.postings).where(
    schema.postings.c.entry == _value("old_entry"),
    schema.postings.c.seq == _value("old_seq"),
)
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
COUNT_POSTED: Final = select(func.count()).select_from(
    select(literal(1).label("one"))
    .where(schema.postings.c.entry.between(_value("low"), _value("high")))
    .limit(_value("limit"))
    .subquery()
)


@lru_cache(maxsize=256)
def by_keys(dialect: Dialect, count: int) -> str:
    """Publications of some identities, for a driver."""
    found = select(*COLUMNS).where(_P.identity.in_([]))
    head, middle, _ = str(found.compile(dialect=dialect)).partition(" IN ")
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


@lru_cache(maxsize=16)
def counted(kind: str) -> Select[Any]:
    """How many lie in a window; the index alone tells, so uncertain ones are counted too."""
    query = select(literal(1).label("one")).limit(_value("limit"))
    if kind == "uncertain":
        query = query.where(_P.span == UNCERTAIN_SPAN)
    else:
        column = _P.finish if kind == "ended" else _P.start
        query = query.where(column.between(_value("low"), _value("high")))
    return select(func.count()).select_from(query.subquery())


@lru_cache(maxsize=256)
def page(kind: str, is_next: bool, probes: tuple[int, ...]) -> Select[Any]:
    """A page of a window; `probes` are the numbers of keys of clauses that must be met."""
    low, high = _value("low"), _value("high")
    seq = _value("last_seq")
    query = select(*COLUMNS).limit(_value("limit"))
    match kind:
        case "ended":
            query = query.where(_P.finish.between(low, high), _P.span != UNCERTAIN_SPAN)
            query = query.order_by(_P.finish.desc(), _P.seq.desc())
            if is_next:
                last = _value("last_finish")
                query = query.where(_P.finish <= last, or_(_P.finish < last, _P.seq < seq))
        case "started":
            query = query.where(_P.start.between(low, high), _P.span != UNCERTAIN_SPAN)
            query = query.order_by(_P.start, _P.seq)
            if is_next:
                last = _value("last_start")
                query = query.where(_P.start >= last, or_(_P.start > last, _P.seq > seq))
        case _:
            query = query.order_by(_P.seq.desc())
            if kind == "uncertain":
                query = query.where(_P.span == UNCERTAIN_SPAN)
            if is_next or kind == "arrived":
                query = query.where(_P.seq < seq)
    return _probed(query, probes)


@lru_cache(maxsize=256)
def overlapping(spans: tuple[int, ...], is_next: bool, probes: tuple[int, ...]) -> Any:
    """The intervals that hold an instant of the window, one span after the other."""
    arms = []
    for place, span in enumerate(spans):
        # The index narrows by the start; how much, the greatest length of the span says.
        width = _WIDEST if (greatest := width_of(span)) is None else greatest
        query = (
            select(*COLUMNS)
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
        arms.append(select(*_probed(query, probes).subquery().c))
    return union_all(*arms).limit(_value("limit")) if len(arms) > 1 else arms[0]


@lru_cache(maxsize=256)
def posted(points: tuple[bool, ...], kind: str) -> Any:
    """Publications by keys, one arm a range, the latest arrival first."""
    entries = schema.postings.c
    low, high = _value("low"), _value("high")
    conditions = {
        "ended": _P.finish.between(low, high),
        "started": _P.start.between(low, high),
        "overlapping": and_(_P.start <= high, _P.finish >= low),
    }
    arms = []
    for place, is_point in enumerate(points):
        lowest, highest = _value(f"low_{place}"), _value(f"high_{place}")
        key = entries.entry == lowest if is_point else entries.entry.between(lowest, highest)
        query = (
            select(*COLUMNS)
            .join(schema.postings, entries.seq == _P.seq)
            .where(key, entries.seq < _value("last_seq"))
            .order_by(entries.seq.desc())
            .limit(_value("limit"))
        )
        if kind in conditions:
            query = query.where(or_(conditions[kind], _P.span == UNCERTAIN_SPAN))
        arms.append(query.subquery())
    if len(arms) == 1:
        return select(*arms[0].c)
    merged = union_all(*(select(*arm.c) for arm in arms)).subquery()
    return select(*merged.c).order_by(merged.c.seq.desc()).limit(_value("limit"))


def _probed(query: Select[Any], probes: tuple[int, ...]) -> Select[Any]:
    for place, count in enumerate(probes):
        entries = schema.postings.alias().c
        keys = [_value(f"entry_{place}_{i}") for i in range(count)]
        query = query.where(
            exists(select(literal(1)).where(entries.entry.in_(keys), entries.seq == _P.seq))
        )
    return query
