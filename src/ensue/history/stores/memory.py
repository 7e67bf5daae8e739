"""Publications in the memory of this process, found by sorted lists; gone when it ends.

Everything is kept as in the other stores: events as their JSON gives them back, numbers by arrival,
windows by span and start, keys of attributes in sorted order. A list that is inserted into at its
end, as that of a stream is, costs next to nothing; elsewhere it costs a move of memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nlargest
from threading import RLock
from typing import TypeVar

from ensue.events.event import Event
from ensue.history.bodies import body_of
from ensue.history.narrowing import Clause
from ensue.history.postings import keys_of
from ensue.history.publication import InstantColumns, Interval, Publication
from ensue.history.store import (
    FOREVER,
    UNCERTAIN_SPAN,
    State,
    Stored,
    Window,
    span_of,
    width_of,
)

Place = tuple[int, int]
"""A time, and the number of the publication at it."""


_T = TypeVar("_T", int, Place)


class MemoryStore:
    """A store in lists and dictionaries."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._rows: dict[int, Stored] = {}
        self._by_key: dict[bytes, int] = {}
        self._seqs: list[int] = []
        self._ends: list[Place] = []
        self._starts: list[Place] = []
        self._spans: dict[int, list[Place]] = {}
        self._postings: dict[bytes, list[int]] = {}
        self._posted_keys: list[bytes] = []
        self._unsorted_keys: set[bytes] = set()
        self._revisions: dict[int, int] = {}
        self._version = self._last = self._revised = self._removed = self._floor = 0
        self._uncertain = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._lock:
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._lock:
            self._version += 1
            yield

    def state(self) -> State:
        return State(
            self._version,
            self._last,
            len(self._rows),
            self._revised,
            self._removed,
            self._floor,
            self._uncertain,
        )

    def by_keys(self, keys: Sequence[bytes]) -> Mapping[bytes, Stored]:
        return {key: self._rows[self._by_key[key]] for key in keys if key in self._by_key}

    def note(self, event: Event) -> None:
        """Does nothing: a publication holds its event."""

    def insert(self, publications: Sequence[Publication]) -> None:
        for each in publications:
            self._last += 1
            self._place(Stored(self._last, each.key, each.times, body_of(each)))

    def insert_instants(self, instants: InstantColumns) -> bool:
        for key, time, text in zip(instants.keys, instants.times, instants.texts, strict=True):
            self._last += 1
            self._place(Stored(self._last, key, Interval.of(time, time), text))
        return True

    def replace(self, changed: Sequence[tuple[Stored, Publication]]) -> None:
        for old, new in changed:
            self._take_out(old)
            self._place(Stored(old.seq, new.key, new.times, body_of(new)))
            self._revisions.pop(old.seq, None)
            self._revisions[old.seq] = self._version
            self._revised = self._version

    def remove(self, gone: Sequence[Stored], floor: int | None = None) -> None:
        for each in gone:
            self._take_out(each)
            self._revisions.pop(each.seq, None)
        if floor is not None:
            self._floor = floor
        elif gone:
            self._removed = self._version

    def page(
        self,
        window: Window,
        after: Stored | None,
        limit: int,
        clauses: Sequence[Clause] = (),  # noqa: ARG002 - the filter is asked again in any case
    ) -> Sequence[Stored]:
        low, high = window.low, window.high
        match window.kind:
            case "ended":
                begin = bisect_left(self._ends, (low, 0))
                bound = (high, FOREVER) if after is None else (_end(after), after.seq)
                stop = (bisect_right if after is None else bisect_left)(self._ends, bound)
                return [
                    self._rows[seq]
                    for _, seq in reversed(self._ends[max(begin, stop - limit) : stop])
                ]
            case "started":
                first = (low, 0) if after is None else (after.times.start, after.seq)
                begin = bisect_right(self._starts, first)
                stop = bisect_right(self._starts, (high, FOREVER))
                places = self._starts[begin : min(begin + limit, stop)]
                return [self._rows[seq] for _, seq in places]
            case "overlapping":
                before = FOREVER if after is None else after.seq
                return self._latest(self._overlapping(low, high), before, limit)
            case "uncertain":
                before = FOREVER if after is None else after.seq
                seqs = (seq for _, seq in self._spans.get(UNCERTAIN_SPAN, ()))
                return self._latest(seqs, before, limit)
            case "arrived":
                stop = len(self._seqs) if after is None else bisect_left(self._seqs, after.seq)
                return [
                    self._rows[seq] for seq in reversed(self._seqs[max(0, stop - limit) : stop])
                ]

    def _overlapping(self, low: int, high: int) -> Iterator[int]:
        for span, places in self._spans.items():
            if span == UNCERTAIN_SPAN:
                continue
            width = width_of(span)
            begin = 0 if width is None else bisect_left(places, (low - width, 0))
            for _, seq in places[begin : bisect_right(places, (high, FOREVER))]:
                end = self._rows[seq].times.end
                if end is None or end >= low:
                    yield seq

    def _latest(self, seqs: Iterator[int], before: int, limit: int) -> list[Stored]:
        return [
            self._rows[seq] for seq in nlargest(limit, (each for each in seqs if each < before))
        ]

    def posted(self, clause: Clause, window: Window, before: int, limit: int) -> Sequence[Stored]:
        seqs = {seq for each in self._matching_keys(clause) for seq in self._postings[each]}
        inside = (
            seq
            for seq in seqs
            if window.admits(self._rows[seq].times) or not self._rows[seq].times.is_certain
        )
        return self._latest(inside, before, limit)

    def count_posted(self, clause: Clause, most: int) -> int:
        count = 0
        for key in self._matching_keys(clause):
            count += len(self._postings[key])
            if count >= most:
                return most
        return count

    def count_window(self, window: Window, most: int) -> int:
        return len(self.page(window, None, most))

    def _matching_keys(self, clause: Clause) -> Iterator[bytes]:
        if self._unsorted_keys:
            known = {*self._posted_keys, *self._unsorted_keys}
            self._posted_keys = sorted(key for key in known if key in self._postings)
            self._unsorted_keys.clear()
        for low, high in clause:
            if low == high:
                if low in self._postings:
                    yield low
                continue
            begin = bisect_left(self._posted_keys, low)
            for key in self._posted_keys[begin : bisect_right(self._posted_keys, high)]:
                if key in self._postings:
                    yield key

    def revisions(self, since: int) -> Sequence[Stored]:
        found = []
        # The latest revisions stand at the end.
        for seq, version in reversed(self._revisions.items()):
            if version <= since:
                break
            found.append(self._rows[seq])
        return found

    def oldest(self, count: int) -> Sequence[Stored]:
        return [self._rows[seq] for seq in self._seqs[:count]]

    def close(self) -> None:
        """Does nothing: the publications go with the process."""

    def _place(self, row: Stored) -> None:
        self._rows[row.seq] = row
        self._by_key[row.key] = row.seq
        _insert(self._seqs, row.seq)
        _insert(self._spans.setdefault(span_of(row.times), []), (row.times.start, row.seq))
        if row.times.is_certain:
            _insert(self._starts, (row.times.start, row.seq))
            if row.times.end is not None:
                _insert(self._ends, (row.times.end, row.seq))
        else:
            self._uncertain = True
        for key in keys_of(row.event):
            seqs = self._postings.get(key)
            if seqs is None:
                seqs = self._postings[key] = []
                self._unsorted_keys.add(key)
            _insert(seqs, row.seq)

    def _take_out(self, row: Stored) -> None:
        del self._rows[row.seq]
        del self._by_key[row.key]
        _delete(self._seqs, row.seq)
        _delete(self._spans[span_of(row.times)], (row.times.start, row.seq))
        if row.times.is_certain:
            _delete(self._starts, (row.times.start, row.seq))
            if row.times.end is not None:
                _delete(self._ends, (row.times.end, row.seq))
        for key in row.keys:
            seqs = self._postings[key]
            _delete(seqs, row.seq)
            if not seqs:
                del self._postings[key]


def _end(row: Stored) -> int:
    return FOREVER if row.times.end is None else row.times.end


def _insert(places: list[_T], place: _T) -> None:
    if not places or places[-1] < place:
        places.append(place)
    else:
        insort(places, place)


def _delete(places: list[_T], place: _T) -> None:
    # What leaves by its age stands at the front, and a list moves on for that at no great cost.
    index = bisect_left(places, place)
    del places[index]
