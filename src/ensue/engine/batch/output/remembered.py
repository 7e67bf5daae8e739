"""The events that a correlation may still put out or name, and what outputs are bound to.

A reading has a number, which cells hold in their slots. `RememberedReadings` keeps the last
batches, and of older readings only those that some key still holds, with the names that an output
may ask for: in come numbers of readings, out go columns. Outputs of one statement are a `Bundle`,
and `BoundPorts` has the values of their ports as columns: causes, and the names that a transformer
asks for.

The module is long because a column of `BoundPorts` is a column of `RememberedReadings`, by slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.engine.batch.input import text_writing
from ensue.engine.batch.input.batches import Batch
from ensue.engine.batch.input.column import (
    NO_TEXTS,
    Column,
    Texts,
    absent,
    joined,
    repeated_text,
    write_texts,
)
from ensue.engine.core.effects import Action, TriggerShape
from ensue.engine.core.numbering import Mask, Rows, distinct
from ensue.events.event import Event
from ensue.lang.expressions.names import Parts

ID: Parts = ("id",)
HEAVY_BYTES = 1 << 26
"""The most bytes of batches that are kept for the sake of a few of their rows."""
TIMER_PORT = "timer "
"""The prefix of a timer port's name, where ports are named by their numbers."""
_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class RecentReadings:
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
            return self.batches[0].events(self.rows_at(at))
        return [
            self.batches[w].event(int(r))
            for w, r in zip(self.which[at].tolist(), self.rows_at(at), strict=True)
        ]


@dataclass(frozen=True)
class KeptReadings:
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


class RememberedReadings:
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
        self.parts: list[KeptReadings | RecentReadings] = []

    @property
    def is_heavy(self) -> bool:
        """Whether the last batches are so large that they are better dropped early."""
        return self._recent_bytes > HEAVY_BYTES

    def add(
        self, batches: Sequence[Batch], rows: Rows | None = None, which: Rows | None = None
    ) -> None:
        """Add readings: row `rows[n]` of `batches[which[n]]`, or every row of the only batch."""
        count = len(batches[0]) if rows is None else len(rows)
        self.parts.append(RecentReadings(self.next, batches, rows, which))
        self.next += count
        self.recent_rows += count
        self._recent_bytes += sum(batch.held_bytes for batch in batches)

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
        if isinstance(last, RecentReadings) and last.which is None:
            column = last.batches[0].column(ID)
            if column.missing is None:
                new = Texts.of(column.values)
                if not places.size or places.min() >= 0:
                    return NO_TEXTS, new, last.rows_at(places)
                is_old = places < 0
                places[~is_old] = last.rows_at(places[~is_old])
        if is_old is None:
            is_old = np.ones(readings.shape, np.bool_)
        numbers = distinct(readings[is_old])
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
        if not isinstance(last, RecentReadings) or last.which is not None:
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

    def _grouped(self, readings: Rows) -> list[tuple[KeptReadings | RecentReadings, Rows]]:
        last = self.parts[-1]
        if readings.size == 0 or int(readings.min()) >= last.first:
            return [(last, np.arange(readings.size))]
        firsts = np.array([part.first for part in self.parts])
        home = np.searchsorted(firsts, readings, side="right") - 1
        here = np.flatnonzero(np.bincount(home))
        return [(self.parts[n], np.flatnonzero(home == n)) for n in here.tolist()]

    def remove_last(self) -> None:
        """Forget the readings that were added last."""
        last = self.parts.pop()
        self.recent_rows -= self.next - last.first
        self.next = last.first

    def renumber(self, readings: Rows) -> int:
        """Keep these readings only, numbered anew in their order; returns the first number."""
        first = self.next
        self.forget_all_but(readings)
        self.next += readings.size
        numbers = np.arange(first, self.next)
        kept = [each for each in self.parts if isinstance(each, KeptReadings)]
        self.parts = [replace(each, numbers=numbers) for each in kept]
        return first

    def drop_before(self, first: int) -> None:
        """Drop the batches all of whose readings come before a number."""
        ends = [*(part.first for part in self.parts[1:]), self.next]
        left = [part for part, end in zip(self.parts, ends, strict=True) if end > first]
        if len(left) < len(self.parts):
            self.parts = left
            recent = [each for each in left if isinstance(each, RecentReadings)]
            self._recent_bytes = sum(b.held_bytes for each in recent for b in each.batches)

    def forget_all_but(self, readings: Rows) -> None:
        """Keep these readings only, sorted by number."""
        self.parts = [self.taken(readings)] if readings.size else []
        self.recent_rows = 0
        self._recent_bytes = 0

    def taken(self, readings: Rows) -> KeptReadings:
        """These readings on their own, sorted by number; there is at least one."""
        columns = {name: self.column(name, readings) for name in self.names}
        return KeptReadings(readings, columns, self.events(readings) if self.whole else None)

    def restore(self, count: int, columns: dict[Parts, Column], whole: list[Event] | None) -> int:
        """Take in readings from a snapshot; returns the number of the first."""
        first = self.next
        if count:
            # Names that only other rules of a group ask for are absent here.
            columns = {name: absent(count) for name in self.names} | columns
            self.parts.append(KeptReadings(np.arange(first, first + count), columns, whole))
            self.next += count
        return first


def is_timer(port: str) -> bool:
    """Whether a port that goes by its number is a timer: its slot holds a time, and no reading."""
    return port.startswith(TIMER_PORT)


@dataclass(slots=True)
class Bundle:
    """Outputs of one statement, in all actions that have it behind `offset` other outputs.

    The same statement may be reached with different ports bound, by rules of different shapes or by
    branches of one. As long as every port is bound in the same slots, that is one bundle, of which
    some outputs lack a port: making them apart would cost as much again, and they would have to be
    put in order after that.
    """

    what: Any
    labels: str
    offset: int
    slots: dict[str, tuple[int, ...]]
    """The slots of every port that is bound in any of the actions."""
    bound_in: dict[int, frozenset[str]] = field(default_factory=dict)
    """For each action the ports that are bound in it."""

    def takes(self, shape: TriggerShape) -> bool:
        """Whether outputs of that shape can be among these.

        Where some lack a port, all have a bound event: another stands in for the one they lack.
        """
        if not self.bound_in or dict(shape.bound) == self.slots:
            return True
        return (
            any(not is_timer(port) for port in self.slots)
            and any(not is_timer(port) for port, _ in shape.bound)
            and all(self.slots.get(port, slots) == slots for port, slots in shape.bound)
        )

    def add(self, action: int, shape: TriggerShape) -> None:
        self.slots |= dict(shape.bound)
        self.bound_in[action] = frozenset(port for port, _ in shape.bound)

    def without(self, port: str) -> Mask | None:
        """For each action whether it lacks a port; None if all have it."""
        lacking = [each for each, ports in self.bound_in.items() if port not in ports]
        if not lacking:
            return None
        lacks = np.zeros(1 + max(self.bound_in), np.bool_)
        lacks[lacking] = True
        return lacks


def bundles_of(table: Sequence[Action], occurring: Sequence[int]) -> list[Bundle]:
    """The bundles of the actions that occur; each output of an action is in one bundle."""
    found: dict[tuple[int, str, Any], list[Bundle]] = {}
    for action in occurring:
        for offset, push in enumerate(table[action]):
            alike = found.setdefault((offset, push.shape.labels, push.what), [])
            bundle = next((each for each in alike if each.takes(push.shape)), None)
            if bundle is None:
                bundle = Bundle(push.what, push.shape.labels, offset, {})
                alike.append(bundle)
            bundle.add(action, push.shape)
    return [bundle for alike in found.values() for bundle in alike]


class BoundPorts:
    """What the ports of a bundle are bound to, by output, as columns.

    `actions` and `slots` have a row for each output; where a port has several slots, one counts.
    A port that is not bound in some outputs is null there and no cause.
    """

    def __init__(
        self,
        bundle: Bundle,
        actions: Rows,
        slots: npt.NDArray[np.int64],
        remembered: RememberedReadings,
        bind_first: bool,
        computed: Mapping[Parts, Column],
    ) -> None:
        self._bundle = bundle
        self._actions = actions
        self._slots = slots
        self._remembered = remembered
        self._first = bind_first
        self._ports = [port for port in bundle.slots if not is_timer(port)]
        self._readings: dict[str, Rows] = {}
        self._known: dict[Parts, Column] = dict(computed)

    def __len__(self) -> int:
        return len(self._slots)

    def readings(self, port: str) -> Rows:
        """The reading that a port is bound to; for an unbound port, that of any bound port."""
        if port not in self._readings:
            held = self._held(port)
            lacking = self._lacking(port)
            if lacking is not None:
                held = np.where(lacking, self._any_bound(), held)
            self._readings[port] = held
        return self._readings[port]

    def _held(self, port: str) -> Rows:
        slots = self._bundle.slots[port]
        if len(slots) == 1:
            return np.asarray(self._slots[:, slots[0]])
        chosen = self._slots[:, slots]
        return np.asarray(chosen.min(axis=1) if self._first else chosen.max(axis=1))

    def _lacking(self, port: str) -> Mask | None:
        without = self._bundle.without(port)
        return None if without is None else without[self._actions]

    def _any_bound(self) -> Rows:
        """For each output a reading that one of its ports is bound to."""
        found = np.zeros(len(self), np.int64)
        for port in self._ports:
            lacking = self._lacking(port)
            held = self._held(port)
            found = np.maximum(found, held if lacking is None else np.where(lacking, 0, held))
        return found

    def causes(self) -> pa.Array:
        """The ids of the bound events, each once, in the order in which they were read."""
        if not self._ports:
            return repeated_text("", len(self))
        readings = np.column_stack([self.readings(port) for port in self._ports])
        old, new, places = self._remembered.ids(readings, None)
        room = len(self._ports) * (1 + max(old.mean, new.mean))
        return write_texts(text_writing.join_texts, len(self), room, old, new, places)

    def column(self, parts: Parts) -> Column:
        """The values of a name: a port, then a name in the event that is bound to it."""
        if parts not in self._known:
            self._known[parts] = self._column(parts)
        return self._known[parts]

    def _column(self, parts: Parts) -> Column:
        port, *rest = parts
        if port not in self._bundle.slots:
            return absent(len(self))
        if not is_timer(port):
            if not rest:
                return absent(len(self))
            known = self._remembered.column(tuple(rest), self.readings(port))
        elif [each.lower() for each in rest] == ["time"]:
            known = Column("timestamp", self._held(port))
        else:
            return absent(len(self))
        lacking = self._lacking(port)
        if lacking is None:
            return known
        return Column(known.kind, known.values, known.missing_mask() | lacking)
