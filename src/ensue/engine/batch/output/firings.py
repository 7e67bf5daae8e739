"""Firings of a batch, what was read, and the loops that put firings in the order of the stream.

A firing is a reading that made a rule put something out, the action that says what, and what was in
the slots of the rule's cell: numbers of readings, 0 for none. `core.cell_drivers` writes firings,
those of many rules key by key; the compiled loops below put these in the order of the stream, by
counting. `build` turns firings into outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.column import Column
from ensue.engine.core.effects import Action
from ensue.engine.core.jit import compiled
from ensue.engine.core.numbering import Numbers, Rows
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


@compiled
def order_firings(rows: Any, fired: int, times: Any, first: int, alarms: Any, when: Any) -> Any:
    """All firings by row; firings of one row keep their order. The rows begin with `first`.

    The alarms are in order already, and each comes before the first row of its time.
    """
    begins = np.zeros(times.size, np.int64)
    for each in range(fired):
        if rows[each] >= 0:
            begins[rows[each] - first] += 1
    order = np.empty(fired, np.int64)
    to = done = 0
    for row in range(times.size):
        while done < alarms.size and when[alarms[done], 0] <= times[row]:
            order[to] = alarms[done]
            to += 1
            done += 1
        of_row = begins[row]
        begins[row] = to
        to += of_row
    while done < alarms.size:
        order[to] = alarms[done]
        to += 1
        done += 1
    for each in range(fired):
        if rows[each] >= 0:
            row = rows[each] - first
            order[begins[row]] = each
            begins[row] += 1
    return order


@compiled
def take_firings(order: Any, rules: Any, at: Any, actions: Any, slots: Any) -> Any:
    """Firings in an order: their rules, rows, actions and slots."""
    count, width = order.size, slots.shape[1]
    rules_of, rows = np.empty(count, np.int64), np.empty(count, np.int64)
    actions_of, bound = np.empty(count, np.int64), np.empty((count, width), np.int64)
    for place in range(count):
        each = np.uint64(order[place])
        rules_of[place] = rules[each]
        rows[place] = at[each]
        actions_of[place] = actions[each]
        for slot in range(width):
            bound[place, slot] = slots[each, slot]
    return rules_of, rows, actions_of, bound
