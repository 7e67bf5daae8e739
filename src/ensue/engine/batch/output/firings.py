"""Firings of a batch, and what was read: what outputs are made of.

A firing is a reading that made a rule put something out, the action that says what, and what was in
the slots of the rule's cell: numbers of readings, 0 for none. Drivers write firings
(`core.stepping`); `build` turns them into outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import Column, Rows
from ensue.engine.core.effects import Action
from ensue.engine.core.numbering import Numbers
from ensue.lang.expressions.names import Parts


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
    last: int
    """The last moment at which something was read."""
    numbers: Rows | None = None


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
