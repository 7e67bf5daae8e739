"""What a store holds, from the latest back to the earliest: what people look through, page by page.

In come a filter, a text to search for and a span; out goes every publication that was looked at,
with its place and whether it is wanted, so that who asks can stop at any of them and go on from
there. An interval counts by its end, one that is open or uncertain by its start. The order of time,
from the earliest on, is `history`'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Final, NamedTuple

from ensue.events.event import Event
from ensue.history.asking.asker import Asker
from ensue.history.asking.bounding import bound
from ensue.history.publication import Interval
from ensue.history.store import FOREVER, Store, Stored, Window
from ensue.lang.expressions.tree import Expression

PAGE: Final = 1_000
_OPEN: Final = Window("overlapping", 1 << 60, FOREVER - 1)
"""What has no end lasts until any time; this is farther than any calendar goes."""


class Place(NamedTuple):
    """Where a publication stands in this order: the time that it counts by, and its number."""

    time: int
    seq: int


class Looked(NamedTuple):
    """A publication that was looked at; `event` is None if it is not wanted."""

    place: Place
    event: Event | None


@dataclass(frozen=True)
class Sought:
    """What is looked for: from `begin` on and before `stop`, with a text whatever its case."""

    expression: Expression | None
    begin: int
    stop: int
    text: SoughtText | None = None
    after: Place | None = None

    def is_in_span(self, row: Stored) -> bool:
        place = _place(row)
        is_behind = self.after is None or place < self.after
        return self.begin <= place.time < self.stop and is_behind


class SoughtText:
    """A text to find in JSON, whatever its case: as it is seen there, or within quotes."""

    def __init__(self, text: str) -> None:
        folded = text.casefold()
        escaped = json.dumps(folded, ensure_ascii=False)[1:-1]
        self._is_plain = folded.isascii()
        self._wanted = tuple({each.encode() for each in (folded, escaped)})

    def is_in(self, body: bytes) -> bool:
        # Of plain letters, bytes tell as much as text does, in a tenth of the time.
        folded = (
            body.lower() if self._is_plain else body.decode(errors="replace").casefold().encode()
        )
        return any(each in folded for each in self._wanted)


def newest(store: Store, asker: Asker, sought: Sought) -> Iterator[Looked]:
    """Publications of a span, the latest first."""
    window = Window("ended", sought.begin, sought.stop - 1)
    expression = sought.expression
    with store.reading():
        asker.refresh()
        apart = [_looked(asker, sought, row) for row in _unended(store) if sought.is_in_span(row)]
        clause = None if expression is None else asker.best(expression, window)
        if expression is not None and clause is not None:
            met = [row for row in asker.matching(expression, clause, window) if _has_ended(row)]
            apart += [_looked(asker, sought, row) for row in met if sought.is_in_span(row)]
            pages: Iterator[Looked] = iter(())
        else:
            pages = _pages(store, asker, sought, window)
    apart.sort(key=lambda each: each.place, reverse=True)
    yield from merge(apart, pages, key=lambda each: each.place, reverse=True)


def _pages(store: Store, asker: Asker, sought: Sought, window: Window) -> Iterator[Looked]:
    after = None
    if sought.after is not None:
        # A place is all that a store needs to know of the last one.
        time, seq = sought.after
        after = Stored(seq, b"", Interval.of(time, time), b"")
    while True:
        with store.reading():
            asker.refresh()
            rows = store.page(window, after, PAGE)
            found = [_looked(asker, sought, row) for row in rows]
        # What is yielded may be waited for; the store is free meanwhile.
        yield from found
        if len(rows) < PAGE:
            return
        after = rows[-1]


def _looked(asker: Asker, sought: Sought, row: Stored) -> Looked:
    bound()()
    text, expression = sought.text, sought.expression
    is_wanted = (text is None or text.is_in(row.body)) and (
        expression is None or asker.is_match(expression, row)
    )
    return Looked(_place(row), row.event if is_wanted else None)


def _unended(store: Store) -> Iterator[Stored]:
    windows = [_OPEN]
    if store.state().uncertain:
        windows.append(Window("uncertain"))
    for window in windows:
        rows: Sequence[Stored] = ()
        while rows := store.page(window, rows[-1] if rows else None, PAGE):
            yield from (row for row in rows if not _has_ended(row))


def _has_ended(row: Stored) -> bool:
    return row.times.is_certain and row.times.end is not None


def _place(row: Stored) -> Place:
    times = row.times
    ended = times.end if times.is_certain else None
    return Place(times.start if ended is None else ended, row.seq)
