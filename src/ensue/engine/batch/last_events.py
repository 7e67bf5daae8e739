"""The last event of each list under each key: what ports of many rules are bound to.

Where a port that is bound is bound to the last event that it wants, nothing has to be kept for each
rule. In come keys and lists, out go readings by number, 0 for none. What was bound before a
snapshot is kept for each rule, since it was saved so, until something has been bound since.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.column import Rows
from ensue.engine.core.numbering import taller

Readings = npt.NDArray[np.int64]


class LastEvents:
    """`list_of` says for each rule, and each place of it, of which list that is."""

    def __init__(self, list_of: npt.NDArray[np.int64], list_count: int) -> None:
        self.list_of = list_of
        self.last = np.zeros((0, max(1, list_count)), np.int64)
        self.restored = np.zeros((0, 0, 0), np.int64)
        """By rule, key and place; empty if there is nothing from before."""

    def grow(self, key_count: int) -> None:
        before = len(self.last)
        self.last = taller(self.last, key_count, 0)
        if self.restored.size:
            restored = self._nothing()
            restored[:, :before] = self.restored
            self.restored = restored

    def _nothing(self) -> Readings:
        rules, places = self.list_of.shape
        return np.zeros((rules, len(self.last), places), np.int64)

    def of(self, rule: int, place: int) -> Any:
        """What a place of a rule is bound to under each key, if it is."""
        held = self.last[:, self.list_of[rule, place]]
        if not self.restored.size:
            return held
        return np.where(held == 0, self.restored[rule, :, place], held)

    def restore(self, rule: int, place: int, readings: Readings) -> None:
        """Take in what a place of a rule was bound to, by key; of several, the last."""
        keys = np.flatnonzero(readings)
        if not keys.size:
            return
        if not self.restored.size:
            self.restored = self._nothing()
        before = self.restored[rule, keys, place]
        # Only these are written to: zeros that nobody has written to take no memory.
        self.restored[rule, keys, place] = np.maximum(before, readings[keys])

    def forget_before(self, reading: int) -> None:
        """Forget what came before a reading: nothing is bound to it any more."""
        self.last[self.last < reading] = 0
        self.restored[self.restored < reading] = 0

    def held(self) -> Rows:
        """The readings that some rule may still be bound to, sorted, each once."""
        if self.restored.size:
            for place in range(self.list_of.shape[1]):
                since = self.last[:, self.list_of[:, place]].T > 0
                self.restored[:, :, place][since] = 0
            if not self.restored.any():
                self.restored = np.zeros((0, 0, 0), np.int64)
        every = np.concatenate([self.last.ravel(), self.restored.ravel()])
        held = np.sort(every[every > 0])
        return held[np.r_[held[:1] > 0, held[1:] != held[:-1]]]
