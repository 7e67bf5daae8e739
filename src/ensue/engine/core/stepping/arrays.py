"""The arrays that drivers take and fill: cells, events, firings, and what a driver lacks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

DONE, LACKS_MOVE, LACKS_ROOM = 0, 1, 2
"""How a driver ended: at the end, at a move that has not been worked out, at a full array."""

NO_ROW = -1
"""The row of a firing that an alarm has caused."""


class CellArrays(NamedTuple):
    """The cells of all keys in one array, and how many numbers the cells of one key have.

    `nearest` has for each key a time before which none of its alarms is due, `earliest` has one for
    all keys. Both are empty where there are no timers.
    """

    flat: npt.NDArray[np.int64]
    stride: int
    nearest: npt.NDArray[np.int64]
    earliest: npt.NDArray[np.int64]


class WalkedEvents(NamedTuple):
    """Events of one rule: their symbols, times and keys, and how many events came before them."""

    symbols: npt.NDArray[np.int32]
    times: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int32]
    before: int


class VisitedEvents(NamedTuple):
    """Events of many rules, and the order in which they are read.

    `combinations` has for each event which lists it is in, or -1 for none; `keys` has -1 for an
    event without a key; `before` is how many events came before them.
    """

    order: npt.NDArray[np.int64]
    combinations: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int32]
    times: npt.NDArray[np.int64]
    before: int


class Reached(NamedTuple):
    """How far a driver has come: the place in the order, the visits done there, the firings."""

    step: int
    visits: int
    fired: int


class Visits(NamedTuple):
    """Which rules read an event, by the number of its combination, and by which letter."""

    begins: npt.NDArray[np.int64]
    rules: npt.NDArray[np.int32]
    letters: npt.NDArray[np.uint8]


class FiringArrays(NamedTuple):
    """Firings: the row that caused each, or `NO_ROW`; its rule, its action, and what is bound.

    `when` has, where there are timers, the time of the trigger, the key's last event and the key.
    """

    rows: npt.NDArray[np.int64]
    rules: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int64]
    when: npt.NDArray[np.int64]
