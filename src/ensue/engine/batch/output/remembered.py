"""The events that a correlation may still have to put out or to name: what its places refer to.

A reading has a number; the last batches are at hand, and of older ones only those readings that
some key still holds in a place, and of them only the names that an output may ask for. In come
readings by number; out go columns.

Readings are numbered one after the other, so those that are held somewhere are seldom far apart.
Then a mark for each number between the first and the last tells what a sort would, many times as
fast (`distinct`, `ranks_in`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input.batches import Batch, TableBatch
from ensue.engine.batch.input.column import NO_TEXTS, Column, Mask, Rows, Texts, absent, joined
from ensue.events import cloudevents
from ensue.events.event import Event
from ensue.lang.derived.parts import statements_of
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.syntax import Correlation, PushNew, PushPort

ID: Parts = ("id",)
HEAVY_BYTES = 1 << 26
"""The most bytes of batches that are kept for the sake of a few of their rows."""
_MOST_MARKS = 8
"""For each number, past which marks cost more than sorting."""
_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Recent:
    """The readings of one batch: reading `first + n` is row `rows[n]` of `batches[which[n]]`.

    Without `rows` and `which` it is row n, of the only batch.
    """

    first: int
    batches: Sequence[Batch]
    rows: Rows | None
    which: Rows | None = None

    def rows_at(self, places: Rows) -> Rows:
        return places if self.rows is None else self.rows[places]

    def column(self, parts: Parts, readings: Rows) -> Column:
        at = readings - self.first
        if self.which is None:
            return self.batches[0].column(parts).take(self.rows_at(at))
        parts_of, order = [], []
        for number, batch in enumerate(self.batches):
            here = np.flatnonzero(self.which[at] == number)
            if here.size:
                parts_of.append(batch.column(parts).take(self.rows_at(at[here])))
                order.append(here)
        places = np.argsort(np.concatenate(order), kind="stable")
        return joined(parts_of).take(places)

    def events(self, readings: Rows) -> list[Event]:
        at = readings - self.first
        if self.which is None:
            return events_of(self.batches[0], self.rows_at(at))
        return [
            self.batches[w].event(int(r))
            for w, r in zip(self.which[at].tolist(), self.rows_at(at), strict=True)
        ]


@dataclass(frozen=True)
class Kept:
    """Readings of earlier batches, by number."""

    numbers: Rows
    columns: dict[Parts, Column]
    whole: list[Event] | None

    @property
    def first(self) -> int:
        return int(self.numbers[0]) if self.numbers.size else 0

    def column(self, parts: Parts, readings: Rows) -> Column:
        return self.columns[parts].take(np.searchsorted(self.numbers, readings))

    def events(self, readings: Rows) -> list[Event]:
        assert self.whole is not None
        return [self.whole[at] for at in np.searchsorted(self.numbers, readings).tolist()]


class Remembered:
    """The readings that cells may still refer to, by number.

    `names` are asked of any reading, besides its id; `whole` says that events are sent on.
    Readings are numbered from 1, so that 0 can stand for none.
    """

    def __init__(self, names: Sequence[Parts], whole: bool) -> None:
        self.names = tuple(dict.fromkeys([ID, *names]))
        self.whole = whole
        self.next = 1
        self.recent_rows = 0
        self._recent_bytes = 0
        self.parts: list[Kept | Recent] = []

    @property
    def is_heavy(self) -> bool:
        """Whether the last batches are so large that they are better dropped early."""
        return self._recent_bytes > HEAVY_BYTES

    def add(self, batches: Sequence[Batch], rows: Rows, which: Rows | None) -> None:
        self.parts.append(Recent(self.next, batches, rows, which))
        self.next += len(rows)
        self.recent_rows += len(rows)
        self._recent_bytes += sum(batch.held_bytes for batch in batches)

    def add_all(self, batch: Batch) -> None:
        """Every row of a batch is a reading."""
        self.parts.append(Recent(self.next, [batch], None))
        self.next += len(batch)
        self.recent_rows += len(batch)
        self._recent_bytes += batch.held_bytes

    def column(self, parts: Parts, readings: Rows) -> Column:
        last = self.parts[-1]
        if readings.size == 0 or int(readings.min()) >= last.first:
            return last.column(parts, readings)
        groups = self._grouped(readings)
        taken = joined([part.column(parts, readings[at]) for part, at in groups])
        places = np.empty(readings.size, np.int64)
        places[np.concatenate([at for _, at in groups])] = np.arange(readings.size)
        return taken.take(places)

    def ids(self, readings: Rows, of_timers: str | None) -> tuple[Texts, Texts, Rows]:
        """The ids of readings: old texts, new texts, and the place of each through both of them.

        Places go up with the readings. A reading that is the firing of a timer has no id of its
        own: without a text for it, its place is -1.
        """
        last = self.parts[-1]
        new, places = NO_TEXTS, readings - last.first
        is_old: Mask | None = None
        if isinstance(last, Recent) and last.which is None:
            column = last.batches[0].column(ID)
            if column.missing is None:
                new = Texts.of(column.values)
                if not places.size or places.min() >= 0:
                    return NO_TEXTS, new, last.rows_at(places)
                is_old = places < 0
                places[~is_old] = last.rows_at(places[~is_old])
        if is_old is None:
            is_old = np.ones(readings.shape, np.bool_)
        numbers = np.unique(readings[is_old])
        held = self.column(ID, numbers)
        places[~is_old] += len(numbers)
        places[is_old] = at = np.searchsorted(numbers, readings[is_old])
        if held.missing is None:
            return Texts.of(held.values), new, places
        if of_timers is None:
            places[is_old] = np.where(held.missing[at], -1, at)
        own = held.values if held.kind == "string" else pa.nulls(len(numbers), pa.string())
        texts = pc.if_else(pa.array(held.missing), pa.scalar(of_timers or ""), own)
        return Texts.of(texts), new, places

    def recent_ids(self) -> tuple[Texts, int, Rows] | None:
        """The ids of the last batch, its first reading, and the row of each reading.

        An empty array of rows says that reading n is in row n. None if the last readings are of
        several batches, or an id is missing.
        """
        last = self.parts[-1] if self.parts else None
        if not isinstance(last, Recent) or last.which is not None:
            return None
        column = last.batches[0].column(ID)
        if column.missing is not None:
            return None
        return Texts.of(column.values), last.first, _NO_ROWS if last.rows is None else last.rows

    def events(self, readings: Rows) -> list[Event]:
        groups = self._grouped(readings)
        found = [event for part, at in groups for event in part.events(readings[at])]
        order = np.concatenate([at for _, at in groups]) if groups else np.empty(0, np.int64)
        return [found[place] for place in np.argsort(order, kind="stable").tolist()]

    def _grouped(self, readings: Rows) -> list[tuple[Kept | Recent, Rows]]:
        last = self.parts[-1]
        if readings.size == 0 or int(readings.min()) >= last.first:
            return [(last, np.arange(readings.size))]
        firsts = np.array([part.first for part in self.parts])
        home = np.searchsorted(firsts, readings, side="right") - 1
        return [(self.parts[n], np.flatnonzero(home == n)) for n in distinct(home).tolist()]

    def take_back(self) -> None:
        """Be as before the last readings were added."""
        last = self.parts.pop()
        self.recent_rows -= self.next - last.first
        self.next = last.first

    def renumber(self, readings: Rows) -> int:
        """Keep these readings only, numbered anew in their order; returns the first number."""
        first = self.next
        numbers = np.arange(first, first + readings.size)
        kept = [replace(self.taken(readings), numbers=numbers)] if readings.size else []
        self.parts = [*kept]
        self.next += readings.size
        self.recent_rows = 0
        self._recent_bytes = 0
        return first

    def drop_before(self, first: int) -> None:
        """Drop the batches all of whose readings come before a number."""
        ends = [*(part.first for part in self.parts[1:]), self.next]
        left = [part for part, end in zip(self.parts, ends, strict=True) if end > first]
        if len(left) < len(self.parts):
            self.parts = left
            recent = [each for each in left if isinstance(each, Recent)]
            self._recent_bytes = sum(b.held_bytes for each in recent for b in each.batches)

    def forget_all_but(self, readings: Rows) -> None:
        """Keep these readings only, sorted by number."""
        self.parts = [self.taken(readings)] if readings.size else []
        self.recent_rows = 0
        self._recent_bytes = 0

    def taken(self, readings: Rows) -> Kept:
        """These readings on their own, sorted by number; there is at least one."""
        columns = {name: self.column(name, readings) for name in self.names}
        return Kept(readings, columns, self.events(readings) if self.whole else None)

    def restore(self, count: int, columns: dict[Parts, Column], whole: list[Event] | None) -> int:
        """Take in readings from a snapshot; returns the number of the first."""
        first = self.next
        if count:
            # Names that only other rules of a group ask for are absent here.
            columns = {name: absent(count) for name in self.names} | columns
            self.parts.append(Kept(np.arange(first, first + count), columns, whole))
            self.next += count
        return first


def asked_of(correlation: Correlation) -> list[Parts]:
    """The names that outputs ask of bound events."""
    return [
        parts[1:]
        for statement in statements_of(correlation)
        if isinstance(statement, PushNew)
        for assignment in statement.assignments
        for parts in names_in(assignment.value)
        if len(parts) > 1
    ]


def sends_events(correlation: Correlation) -> bool:
    """Whether outputs are whole events that are sent on."""
    return any(isinstance(statement, PushPort) for statement in statements_of(correlation))


def is_time(name: Parts) -> bool:
    return len(name) == 1 and name[0].lower() == "time"


def write_event(event: Event) -> bytes:
    """An event for a snapshot, exactly; as JSON where msgpack has no room for its integers."""
    try:
        return msgspec.msgpack.encode(event)
    except OverflowError:
        return cloudevents.encode(event)


def read_event(data: bytes) -> Event:
    if data[:1] == b"{":
        return cloudevents.decode(data)
    return msgspec.msgpack.decode(data, type=Event)


def events_of(batch: Batch, rows: Rows) -> list[Event]:
    if isinstance(batch, TableBatch):
        return batch.events(rows)
    return [batch.event(row) for row in rows.tolist()]


def distinct(numbers: Rows) -> Rows:
    """The numbers in their order, each once."""
    if not numbers.size:
        return numbers
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > _MOST_MARKS * numbers.size:
        # Sorted by hand: for millions of them that is several times as fast as `np.unique`.
        held = np.sort(numbers)
        return held[np.r_[True, held[1:] != held[:-1]]]
    seen = np.zeros(high - low + 1, np.bool_)
    seen[numbers - low] = True
    return np.flatnonzero(seen) + low


def ranks_in(known: Rows, numbers: Rows) -> Rows:
    """The rank of each number among the known numbers, which are distinct and in order.

    The rank of a number that is not known has no meaning.
    """
    if not known.size or int(known[-1] - known[0]) > _MOST_MARKS * known.size:
        return np.searchsorted(known, numbers)
    low, high = int(known[0]), int(known[-1])
    rank_of = np.zeros(high - low + 1, np.int64)
    rank_of[known - low] = np.arange(known.size)
    return rank_of[np.clip(numbers, low, high) - low]
