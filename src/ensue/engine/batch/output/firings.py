"""Firings of a batch, and the arrays that kernels write them to.

A firing is a row that made a rule put something out, the action that says what, and what was in the
slots of the rule's cell: numbers of readings, 0 for none. `build` turns firings into outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import Column, Rows
from ensue.engine.core.effects import Action
from ensue.engine.core.numbering import taller
from ensue.engine.core.stepping.arrays import Fired
from ensue.lang.expressions.names import Parts


@dataclass(frozen=True, slots=True)
class Firings:
    """`at` are places in the events that were given; `actions` number into `table`."""

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
        """These firings, and those of another walk over the events from `offset` on."""
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
