"""Firings of a batch: the arrays that kernels write them to, and what outputs are made of.

A firing is a reading that made a rule put something out, the action that says what, and what was in
the slots of the rule's cell: numbers of readings, 0 for none. Outputs of one statement are a
`Bundle`, and `Bound` has what their ports are bound to, as columns: causes, and the names that a
transformer asks for. `build` turns firings into outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.column import (
    Column,
    Mask,
    Rows,
    absent,
    constant,
    written,
    written_if_there,
)
from ensue.engine.batch.kernels import text_writing
from ensue.engine.batch.output.remembered import Remembered
from ensue.engine.core.effects import Action, Shape
from ensue.engine.core.numbering import Numbers, taller
from ensue.engine.core.stepping.arrays import Fired
from ensue.lang.expressions.names import Parts

TIMER_PORT = "timer "
"""What the number of a timer port begins with, where ports go by their numbers."""
_FEW = 3
"""Causes of so many ports have a loop of their own."""


def is_timer(port: str) -> bool:
    """Whether a port that goes by its number is a timer: its slot holds a time, and no reading."""
    return port.startswith(TIMER_PORT)


@dataclass(frozen=True, slots=True)
class Readings:
    """What a correlation has read of a batch: the time and the key of each reading.

    Firings come in the order of the stream; the readings of different keys may not, where there
    are timers. `numbers` has the numbers of readings that do not follow each other: 0 for the
    alarms of a rule under a key, at one moment.
    """

    first: int
    times: npt.NDArray[np.int64]
    keys: Numbers
    latest: int | None = None
    numbers: Rows | None = None

    @property
    def last(self) -> int:
        """The last moment at which something was read."""
        return int(self.times[-1]) if self.latest is None else self.latest


@dataclass(frozen=True, slots=True)
class Firings:
    """Firings over some events: for each the event, the action and what is bound.

    `at` has places in the events that were given; `actions` has numbers of entries of `table`.
    """

    at: Rows
    actions: Rows
    slots: npt.NDArray[np.int64]
    table: Sequence[Action]
    rules: Rows | None = None
    """Where several rules may have fired: which, by their numbers in their group."""
    read: int = -1
    """How many of the events have been read, where a walk may have stopped before the last."""
    computed: Mapping[Parts, Column] = field(default_factory=dict)
    """For each firing values beside those of bound events: aggregates, by the names they have."""

    def then(self, later: Firings, offset: int) -> Firings:
        """These firings, then the firings of another walk over the events from `offset` on."""
        return Firings(
            np.concatenate([self.at, later.at + offset]),
            np.concatenate([self.actions, later.actions + len(self.table)]),
            np.concatenate([self.slots, later.slots]),
            [*self.table, *later.table],
        )


class Room:
    """Arrays that kernels write firings to; `timed` ones with the time, start and key of each."""

    def __init__(self, size: int, slots: int, timed: bool = False) -> None:
        self.arrays = Fired(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, slots), np.int64),
            np.empty((size if timed else 0, 3), np.int64),
        )

    def grow(self) -> None:
        held = self.arrays
        size = 2 * len(held.rows) + 1024
        rows, rules, actions, slots = (taller(each, size) for each in held[:4])
        when = taller(held.when, size) if len(held.when) else held.when
        self.arrays = Fired(rows, rules, actions, slots, when)

    def firings(self, fired: int, table: Sequence[Action], read: int) -> Firings:
        """The firings of one rule, in the order in which they were written."""
        held = self.arrays
        return Firings(
            held.rows[:fired], held.actions[:fired], held.slots[:fired], table, None, read
        )


@dataclass(slots=True)
class Bundle:
    """Outputs of one statement, in all actions that have it behind `offset` other outputs.

    The same statement may be reached with different ports bound, by rules of different shapes or by
    branches of one. As long as every port is bound at the same places, that is one bundle, of which
    some outputs lack a port: making them apart would cost as much again, and they would have to be
    put in order after that.
    """

    what: Any
    labels: str
    offset: int
    places: dict[str, tuple[int, ...]]
    """Of every port that is bound in any of the actions."""
    bound_in: dict[int, frozenset[str]] = field(default_factory=dict)
    """For each action the ports that are bound in it."""

    def takes(self, shape: Shape) -> bool:
        """Whether outputs of that shape can be among these.

        Where some lack a port, all have a bound event: another stands in for the one they lack.
        """
        if not self.bound_in or dict(shape.bound) == self.places:
            return True
        return (
            any(not is_timer(port) for port in self.places)
            and any(not is_timer(port) for port, _ in shape.bound)
            and all(self.places.get(port, places) == places for port, places in shape.bound)
        )

    def add(self, action: int, shape: Shape) -> None:
        self.places |= dict(shape.bound)
        self.bound_in[action] = frozenset(port for port, _ in shape.bound)

    def without(self, port: str) -> Mask | None:
        """For each action whether it lacks a port; None if all have it."""
        lacking = [each for each, ports in self.bound_in.items() if port not in ports]
        if not lacking:
            return None
        lacks = np.zeros(1 + max(self.bound_in), np.bool_)
        lacks[lacking] = True
        return lacks

    def lacks(self, ports: Sequence[str]) -> Mask:
        """Whether an action lacks a port, by action and port; without rows if none lacks any."""
        every = [self.without(port) for port in ports]
        none = np.zeros(1 + max(self.bound_in), np.bool_)
        if all(each is None for each in every):
            return np.zeros((0, len(ports)), np.bool_)
        return np.column_stack([none if each is None else each for each in every])


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


class Bound:
    """What the ports of a bundle are bound to, by output, as columns.

    `actions` and `places` have a row for each output; where a port has several places, one counts.
    A port that is not bound in some outputs is null there and no cause.
    """

    def __init__(
        self,
        bundle: Bundle,
        actions: Rows,
        places: npt.NDArray[np.int64],
        remembered: Remembered,
        bind_first: bool,
        computed: Mapping[Parts, Column],
    ) -> None:
        self._bundle = bundle
        self._actions = actions
        self._places = places
        self._remembered = remembered
        self._first = bind_first
        self._ports = [port for port in bundle.places if not is_timer(port)]
        self._readings: dict[str, Rows] = {}
        self._known: dict[Parts, Column] = dict(computed)

    def __len__(self) -> int:
        return len(self._places)

    def readings(self, port: str) -> Rows:
        """The reading that a port is bound to; for an unbound port, that of any bound port."""
        if port not in self._readings:
            held = self._held(port)
            lacking = self._lacking(port)
            if lacking is not None:
                held = np.where(lacking, self._any(), held)
            self._readings[port] = held
        return self._readings[port]

    def _held(self, port: str) -> Rows:
        places = self._bundle.places[port]
        if len(places) == 1:
            return np.asarray(self._places[:, places[0]])
        chosen = self._places[:, places]
        return np.asarray(chosen.min(axis=1) if self._first else chosen.max(axis=1))

    def _lacking(self, port: str) -> Mask | None:
        without = self._bundle.without(port)
        return None if without is None else without[self._actions]

    def _any(self) -> Rows:
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
            return constant("", len(self))
        found = self._recent_causes()
        if found is not None:
            return found
        readings = np.column_stack([self.readings(port) for port in self._ports])
        old, new, places = self._remembered.ids(readings, None)
        room = len(self._ports) * (1 + max(old.mean, new.mean))
        return written(text_writing.join_texts, len(self), room, old, new, places)

    def _recent_causes(self) -> pa.Array | None:
        """The causes if all of up to three ports are bound in the last batch; else None."""
        places = [self._bundle.places[port] for port in self._ports]
        recent = self._remembered.recent_ids()
        if recent is None or len(places) > _FEW or any(len(each) > 1 for each in places):
            return None
        ids, first, rows = recent
        ports = [*self._ports, *self._ports[-1:] * (_FEW - len(places))]
        columns = np.array([self._bundle.places[port][0] for port in ports], np.int64)
        room = len(places) * (1 + ids.mean)
        return written_if_there(
            text_writing.join_few, len(self), room, ids,
            text_writing.RecentPlaces(
                self._places, columns, first, rows, self._actions, self._bundle.lacks(ports)
            ),
        )  # fmt: skip

    def column(self, parts: Parts) -> Column:
        """The values of a name: a port, then a name in the event that is bound to it."""
        if parts not in self._known:
            self._known[parts] = self._column(parts)
        return self._known[parts]

    def _column(self, parts: Parts) -> Column:
        port, *rest = parts
        if port not in self._bundle.places:
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
