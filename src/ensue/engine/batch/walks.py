"""Takes events through the table of a machine, many at once.

In come events as symbols (which ports and predicates of the correlation they match, as bits) with
the numbers of their keys; out go `Firings`: which event fired, which action that is, and the
readings that were in the places of its key (0 for none). The state of every key is in arrays that
grow with the keys.

`TableWalk` is for machines without a window, on a table that is filled as events ask for entries;
`window_walk` has the same for those with one, and `linear_walk` that for machines whose tables have
grown past their budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import table_kernels
from ensue.engine.batch.column import Rows
from ensue.engine.core.effects import Action
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Numbers, taller
from ensue.engine.core.table import NOT_STARTED, FilledTable
from ensue.machine.model import Machine

FREE_ENTRIES = 1024
EVENTS_AN_ENTRY = 64


@dataclass(frozen=True, slots=True)
class Firings:
    """`at` are places in the events that were given; `actions` number into `table`."""

    at: Rows
    actions: Rows
    places: npt.NDArray[np.int64]
    table: Sequence[Action]
    rules: Rows | None = None
    """Where several correlations have fired: which, by their numbers among those."""
    read: int = -1
    """How many of the events have been read, where a walk may have stopped before the last."""

    def then(self, later: Firings, offset: int) -> Firings:
        """These, and those of another walk over the events from `offset` on."""
        return Firings(
            np.concatenate([self.at, later.at + offset]),
            np.concatenate([self.actions, later.actions + len(self.table)]),
            np.concatenate([self.places, later.places]),
            [*self.table, *later.table],
        )

    def can_follow(self, earlier: Firings) -> bool:
        """Whether these say what they are of as others do."""
        return self.table is earlier.table and self.places.shape[1] == earlier.places.shape[1]

    @classmethod
    def joined(cls, parts: Sequence[Firings]) -> Firings:
        """Those of several correlations, of which each part can follow the one before."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([each.at for each in parts]),
            np.concatenate([each.actions for each in parts]),
            np.concatenate([each.places for each in parts]),
            parts[0].table,
            np.concatenate([each.rules for each in parts if each.rules is not None]),
        )


class Patience:
    """How many entries of a table may be worked out for the events that have been read.

    An entry costs about as much as stepping the machine for some hundreds of events. A table that
    is still growing after its first entries is better left, if that is possible.
    """

    def __init__(self, free: int = FREE_ENTRIES, events_an_entry: int = EVENTS_AN_ENTRY) -> None:
        self.free = free
        self._events_an_entry = events_an_entry
        self.events = 0

    def is_over(self, filled: FilledTable, more: int) -> bool:
        """Asked when so many events have been read on top of those that were counted before."""
        return filled.entries_made > self.free + (self.events + more) // self._events_an_entry


class TableWalk:
    """All keys of one correlation on one table."""

    def __init__(self, filled: FilledTable) -> None:
        self.filled = filled
        self.states = np.zeros(0, np.int32)
        self.places = np.zeros((0, filled.places + 1), np.int64)

    def read(
        self,
        bits: Any,
        keys: Numbers,
        times: Any,  # noqa: ARG002 - without a window they do not count
        key_count: int,
        before: int,
        patience: Patience | None = None,
    ) -> Firings:
        """With a patience it may stop at an event, where an entry would have to be worked out."""
        self.grow(key_count)
        filled = self.filled
        symbols = filled.number_symbols(bits)
        at = fired = 0
        out = Room(max(1024, len(keys) // 8), filled.places)
        while True:
            at, fired = table_kernels.walk_table(
                symbols, keys, at, filled.words, filled.bind_from, filled.bind_places,
                self.states, self.places, before, out.at, out.actions, out.places, fired,
            )  # fmt: skip
            if at == len(keys) or (patience and patience.is_over(filled, at)):
                return out.firings(fired, filled.actions, at)
            state, symbol = int(self.states[keys[at]]), int(symbols[at])
            if filled.array[state, symbol, 0] < 0:
                filled.fill(state, symbol)
            else:
                out.grow(fired)

    def grow(self, key_count: int) -> None:
        if key_count > len(self.states):
            size = max(key_count, 2 * len(self.states))
            self.states = taller(self.states, size, NOT_STARTED)
            self.places = taller(self.places, size, 0)

    def renew(self, empty: FilledTable) -> None:
        """Go on with an empty table, from the states that keys are in."""
        self.states = empty.renumbered(self.states, self.filled)
        self.filled = empty

    def is_busy(self) -> npt.NDArray[np.bool_]:
        """Which keys are in another state than at their start."""
        return ~self.filled.is_idle()[self.states]

    def bound(self) -> npt.NDArray[np.bool_]:
        """For each key and place, whether the reading in it still counts."""
        return self.filled.bound()[self.states]

    def starts_of(self, chosen: Rows) -> npt.NDArray[np.int64]:
        """For each of the keys and each state of the machine its start, as `LinearWalk` has it.

        Without a window it is enough that a start is there; the first states are as given.
        """
        machine = self.filled.machine_table.machine
        by_state = np.full((len(self.filled.known), len(machine.names)), -FAR, np.int64)
        for number, state in enumerate(self.filled.known):
            active = machine.initial if state is None else state.active
            by_state[number, sorted(active)] = 0
            by_state[number, sorted(active & machine.constant)] = FAR
        found: npt.NDArray[np.int64] = by_state[self.states[chosen]]
        return found

    def started_of(self, chosen: Rows) -> npt.NDArray[np.bool_]:
        return np.asarray(self.states[chosen] != NOT_STARTED)


class Room:
    """Arrays that firings are written to."""

    def __init__(self, size: int, places: int) -> None:
        self.at = np.empty(size, np.int64)
        self.actions = np.empty(size, np.int64)
        self.places = np.empty((size, places), np.int64)

    def grow(self, used: int) -> None:
        size = 2 * used + 1024
        self.at = taller(self.at, size, 0)
        self.actions = taller(self.actions, size, 0)
        self.places = taller(self.places, size, 0)

    def firings(self, fired: int, table: Sequence[Action], read: int = -1) -> Firings:
        at, actions, places = self.at[:fired], self.actions[:fired], self.places[:fired]
        return Firings(at, actions, places, table, read=read)


def first_starts(machine: Machine) -> npt.NDArray[np.int64]:
    """The starts of a key that has read nothing."""
    starts = np.full(len(machine.names), -FAR, np.int64)
    starts[sorted(machine.initial)] = FAR
    return starts


def moving_states(machine: Machine) -> list[int]:
    """The states whose starts change: with labels that are aborted, their marks too."""
    fixed = frozenset[int]() if machine.switches else machine.constant
    return [state for state in range(len(machine.names)) if state not in fixed]
