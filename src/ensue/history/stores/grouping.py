"""Postings of a batch of events that are alike, made column by column and not event by event.

In come events without extensions whose data have the same names and plain values; out go the rows
of `schema.postings` that `blocks.rows_of` would make of them, in the order of their keys. The
events that share a value are found by sorting numbers, and all blocks of a column are packed at
once, so that an event costs little beside the values that it has alone. What is out of the
ordinary is left to `postings.entries_of`: nothing is made of such a batch here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.events.event import Event
from ensue.history.postings import alike_columns, key_of_value
from ensue.history.stores.blocks import MOST, REACH, Row

Numbers = npt.NDArray[np.intp]


def rows_of_alike(events: Sequence[Event], first: int) -> list[Row] | None:
    """Rows for the keys of events, numbered from `first` on; None unless all are alike."""
    # A batch reaches no further than a block may, so that only its length bounds a block.
    if not events or len(events) > REACH:
        return None
    columns = alike_columns(list(events))
    if columns is None:
        return None
    rows: list[Row] = []
    seen: set[bytes] = set()
    for name, column in columns.items():
        order, begins = _grouped(column)
        found = [(key_of_value(name, column[order[at]]), at) for at in begins.tolist()]
        keys = [key for key, _ in found if key is not None]
        # Values that differ may share a key, as `'5'` and `'5.0'`.
        if len(seen) + len(keys) > len(seen.union(keys)):
            return None
        seen.update(keys)
        rows += _blocks(found, order, first)
    rows.sort()
    return rows


def _grouped(column: list[Any]) -> tuple[Numbers, Numbers]:
    """The places of a column, those of equal values together and ascending; where each begins."""
    if column.count(column[0]) == len(column):
        return np.arange(len(column)), np.zeros(1, np.intp)
    known: dict[Any, int] = {}
    # A value stands for the place at which it came first.
    codes = np.fromiter(map(known.setdefault, column, count()), np.uint16, len(column))
    order = np.argsort(codes, kind="stable")
    changes = np.flatnonzero(np.diff(codes[order])) + 1
    return order, np.concatenate(([0], changes))


def _blocks(found: list[tuple[bytes | None, int]], order: Numbers, first: int) -> list[Row]:
    """Blocks of the numbers under each key, which begins at a place of `order`."""
    keys: list[bytes | None] = []
    begins: list[int] = []
    ends = [at for _, at in found[1:]] + [len(order)]
    for (key, begin), end in zip(found, ends, strict=True):
        for at in range(begin, end, MOST):
            keys.append(key)
            begins.append(at)
    stops = [*begins[1:], len(order)]
    lasts = order[np.array(stops) - 1]
    below = np.repeat(lasts, np.diff([*begins, len(order)])) - order
    # Backwards, a block begins with its last number, and the nearest to it comes next.
    packed = below[::-1].astype("<u4").tobytes()
    whole = 4 * len(order)
    return [
        (key, first + last, packed[whole - 4 * stop + 4 : whole - 4 * begin])
        for key, begin, stop, last in zip(keys, begins, stops, lasts.tolist(), strict=True)
        if key is not None
    ]
