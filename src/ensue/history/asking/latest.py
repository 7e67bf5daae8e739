"""The latest publications that match a filter, kept up to date as more arrive; for FILTER.

In come a filter without temporal terms and how many of its matches are wanted; out go their values
of a name. Each publication is looked at once for each filter: new ones when they have arrived,
older ones only as far back as the wanted number lies. What is held is bounded by the limits that
were asked for, and in total by `MOST_HELD`; losing it costs a new search and changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from ensue.history.asking.prepared import Prepared
from ensue.history.asking.references import value_of
from ensue.history.narrowing import Clause
from ensue.history.publication import Interval
from ensue.history.store import FOREVER, Store, Stored, Window
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.tree import Name
from ensue.lang.expressions.values import EXACT_IN_DOUBLES

MOST_HELD: Final = 500_000
"""Publications held for all filters together."""
PAGE: Final = 256
LARGEST_PAGE: Final = 4096
COUNTED: Final = 4096
_NEVER: Final = Interval.of(0, 0)

Test = Callable[[Prepared, Stored, bool], bool]


class NameValues:
    """The values of a name in publications that follow each other by arrival.

    It is counted how many are no plain numbers, so that numbers are compared without looking at
    each: as soon as there is another value, or none, `compare` leaves it to the caller.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self.all = list(values)
        self._others = _count_others(self.all)

    def append(self, values: Sequence[Any]) -> None:
        self.all += values
        self._others += _count_others(values)

    def cut(self, count: int) -> None:
        self._others -= _count_others(self.all[:count])
        del self.all[:count]

    def compare(self, operator: str, value: Any, begin: int) -> bool | None:
        """Whether a value stands so to one of these from a place on; None if it is not known."""
        if self._others or not _is_plain_number(value):
            return None
        values = self.all[begin:]
        if not values:
            return False
        match operator:
            case "<":
                return bool(value < max(values))
            case "<=":
                return bool(value <= max(values))
            case ">":
                return bool(value > min(values))
            case ">=":
                return bool(value >= min(values))
            case "=":
                return value in values
            case _:
                return values.count(value) < len(values)


def _count_others(values: Iterable[Any]) -> int:
    return sum(not _is_plain_number(each) for each in values)


def _is_plain_number(value: Any) -> bool:
    return type(value) in (int, float) and -EXACT_IN_DOUBLES <= value <= EXACT_IN_DOUBLES


class Latest:
    """The latest matches of one filter: all of those numbered `floor` to `top`, by number."""

    def __init__(self, prepared: Prepared, top: int) -> None:
        self.prepared = prepared
        self.top = top
        self.floor = top + 1
        self.capacity = 0
        self.seqs: list[int] = []
        self.rows: list[Stored] = []
        self._keys: set[bytes] = set()
        self._values: dict[Name, NameValues] = {}

    def compare(self, operator: str, value: Any, name: Name, limit: int, but: bytes) -> bool | None:
        """Whether a value stands so to that of one of the latest `limit`, if numbers tell it.

        None otherwise: then `values` are to be asked one by one. `but` is the key of a publication
        that does not count.
        """
        if but in self._keys:
            return None
        known = self._values.get(name)
        if known is None:
            known = self._values[name] = NameValues(_lookup(name, row) for row in self.rows)
        return known.compare(operator, value, max(0, len(self.rows) - limit))

    def values(self, name: Name, limit: int, but: bytes) -> Iterator[Any]:
        """The values of the latest `limit` matches, the publication of a key left out."""
        rows = [row for row in self.rows if row.key != but] if but in self._keys else self.rows
        found = (_lookup(name, row) for row in rows[max(0, len(rows) - limit) :])
        return (each for each in found if each is not MISSING)

    def add_newer(self, rows: Sequence[Stored]) -> None:
        """Matches that have arrived since, in the order of their numbers."""
        self.seqs += [row.seq for row in rows]
        self.rows += rows
        self._keys.update(row.key for row in rows)
        for name, values in self._values.items():
            values.append([_lookup(name, row) for row in rows])
        self._trim()

    def add_older(self, rows: Sequence[Stored]) -> None:
        self.seqs[:0] = [row.seq for row in rows]
        self.rows[:0] = rows
        self._keys.update(row.key for row in rows)
        self._values.clear()

    def put(self, row: Stored, is_match: bool) -> None:
        """A publication has changed."""
        if not self.floor <= row.seq <= self.top:
            return
        self.drop(row.seq)
        if is_match:
            place = bisect_left(self.seqs, row.seq)
            self.seqs.insert(place, row.seq)
            self.rows.insert(place, row)
            self._keys.add(row.key)
            self._trim()

    def drop(self, seq: int) -> None:
        place = bisect_left(self.seqs, seq)
        if place < len(self.seqs) and self.seqs[place] == seq:
            self._keys.discard(self.rows[place].key)
            del self.seqs[place], self.rows[place]
            self._values.clear()

    def cut(self, count: int) -> None:
        """Drop the `count` oldest matches."""
        self._keys.difference_update(row.key for row in self.rows[:count])
        del self.seqs[:count], self.rows[:count]
        for values in self._values.values():
            values.cut(count)

    def start_afresh(self, floor: int) -> None:
        """Give up all; what is numbered `floor` or higher follows."""
        self.seqs, self.rows, self.floor = [], [], floor
        self._keys.clear()
        self._values.clear()

    def _trim(self) -> None:
        # Half as many again, so that lists are cut rarely; one more for X, which is left out.
        surplus = len(self.rows) - self.capacity - 1
        if surplus > max(PAGE, self.capacity // 2):
            self.cut(surplus)
            self.floor = self.seqs[0]


class LatestByFilter:
    """The latest matches of every filter that FILTER has asked for."""

    def __init__(self, store: Store, test: Test) -> None:
        self._store = store
        self._test = test
        self._known: dict[int, Latest] = {}

    def of(self, prepared: Prepared, limit: int) -> Latest:
        """The latest `limit` matches and more, as the store stands now."""
        last = self._store.state().last
        latest = self._known.get(id(prepared))
        if latest is None or latest.prepared is not prepared or not prepared.is_known:
            if sum(len(each.rows) for each in self._known.values()) > MOST_HELD:
                self._known.clear()
            latest = self._known[id(prepared)] = Latest(prepared, last)
        latest.capacity = max(latest.capacity, limit)
        if latest.top < last:
            self._go_on(latest, last)
        if len(latest.rows) <= limit and latest.floor > 1:
            self._go_back(latest, limit)
        return latest

    def clear(self) -> None:
        self._known.clear()

    def revise(self, rows: Sequence[Stored]) -> None:
        for latest in self._known.values():
            for row in rows:
                latest.put(row, self._test(latest.prepared, row, False))

    def raise_floor(self, floor: int) -> None:
        """Publications numbered up to here are gone."""
        for latest in self._known.values():
            latest.cut(bisect_left(latest.seqs, floor + 1))

    def _go_on(self, latest: Latest, last: int) -> None:
        """Look at what has arrived since, the newest first: as much of it as can matter."""
        found: list[Stored] = []
        for row in self._older(latest, FOREVER, min(PAGE, last - latest.top)):
            if row.seq <= latest.top:
                break
            if self._test(latest.prepared, row, False):
                found.append(row)
                if len(found) > latest.capacity:
                    latest.start_afresh(row.seq)
                    break
        latest.top = last
        latest.add_newer(found[::-1])

    def _go_back(self, latest: Latest, limit: int) -> None:
        found: list[Stored] = []
        floor = 0
        for row in self._older(latest, latest.floor, PAGE):
            if self._test(latest.prepared, row, False):
                found.append(row)
                if len(latest.rows) + len(found) > limit:
                    floor = row.seq
                    break
        latest.floor = floor
        latest.add_older(found[::-1])

    def _older(self, latest: Latest, before: int, limit: int) -> Iterator[Stored]:
        """Publications that may match, numbered below `before`, the newest first."""
        store, window = self._store, Window("arrived")
        rows: Sequence[Stored] = [Stored(before, b"", _NEVER, b"")]
        clause = None
        for number in range(1 << 40):
            # A filter that few match is better looked for by its keys; the first page tells.
            if number == 1:
                clause = self._best(latest)
            if clause is not None:
                rows = store.posted(clause, window, rows[-1].seq, limit)
            else:
                rows = store.page(window, rows[-1], limit)
            if not rows:
                return
            yield from rows
            limit = min(limit * 2, LARGEST_PAGE)

    def _best(self, latest: Latest) -> Clause | None:
        fewest, best = min(self._store.state().count, COUNTED), None
        for each in latest.prepared.clauses:
            count = self._store.count_posted(each, fewest)
            if count < fewest:
                fewest, best = count, each
        return best


def _lookup(name: Name, row: Stored) -> Any:
    return value_of(name, row.event, row.times)
