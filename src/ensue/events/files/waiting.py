"""Rows of chunks that wait until nothing earlier can come.

In come rows as they arrive, with their times; out go chunks of those up to a time, by their times
and then by their arrival. A chunk is held as long as one of its rows waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ensue.events.files.chunk import Chunk, Rows
from ensue.events.files.joining import Joined, part_of


class _Waiting(NamedTuple):
    chunk: Chunk
    rows: Rows
    times: Any


class WaitingRows:
    """Rows in the order of their arrival. `declared` are the attributes that a library declares."""

    def __init__(self, declared: Iterable[str]) -> None:
        self._declared = frozenset(declared)
        self._waiting: list[_Waiting] = []

    def add(self, chunk: Chunk, rows: Rows, times: Any) -> None:
        """Let some rows of a chunk wait; `times` are those of all of its rows."""
        if len(rows):
            self._waiting.append(_Waiting(chunk, rows, times[rows]))

    def take(self, until: int | None) -> Chunk | None:
        """The rows up to a time, or all of them; None if there are none."""
        if not self._waiting:
            return None
        waiting = self._waiting
        times = np.concatenate([each.times for each in waiting])
        order = np.argsort(times, kind="stable")
        if until is not None:
            order = order[: int(np.searchsorted(times[order], until, "right"))]
        if not len(order):
            return None
        is_taken = np.zeros(len(times), np.bool_)
        is_taken[order] = True
        self._waiting = []
        first = 0
        for chunk, rows, own in waiting:
            left = ~is_taken[first : first + len(rows)]
            first += len(rows)
            if left.any():
                self._waiting.append(_Waiting(chunk, rows[left], own[left]))
        if len(waiting) == 1 and len(order) == len(waiting[0].chunk) and (np.diff(order) > 0).all():
            return waiting[0].chunk
        parts = [part_of(each.chunk, _some(each.chunk, each.rows), each.rows) for each in waiting]
        return Joined(parts, self._declared).chunk(order)


def _some(chunk: Chunk, rows: Rows) -> Any:
    return chunk.rows if len(rows) == len(chunk) else chunk.rows.take(rows)
