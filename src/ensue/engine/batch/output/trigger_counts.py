"""The number of an output among those of its trigger: the last part of its id.

In come the outputs of a batch, or of a part of one, in their order; out go their numbers, from 1. A
trigger is an event under a key of a correlation, so nearly always its outputs stand together. Only
where an id comes twice at one time, in a batch or in two that follow each other, do both count
together; such outputs are counted one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.column import Rows
from ensue.engine.batch.input.keys import TextNumbers
from ensue.engine.batch.input.texts import Texts

Counted = tuple[int, int, str]
"""A correlation, a key and the id of a trigger."""


class TriggerCounts:
    """`at` is the last moment at which something was put out, and `counted` what, how often."""

    def __init__(self) -> None:
        self.at: int | None = None
        self._counted: dict[Counted, int] = {}
        # Outputs of that moment which are not in `_counted` yet: they may never be asked for.
        self._waiting: list[tuple[Any, Any, pa.Array, Any]] = []
        self._ids = TextNumbers()

    @property
    def counted(self) -> dict[Counted, int]:
        for rules, keys, ids, numbers in self._waiting:
            for rule, key, id_, number in zip(
                rules.tolist(), keys.tolist(), ids.to_pylist(), numbers.tolist(), strict=True
            ):
                known = self._counted.get((rule, key, id_), 0)
                self._counted[rule, key, id_] = max(known, number)
        self._waiting = []
        return self._counted

    def recall(self, at: int | None, counted: Mapping[Counted, int]) -> None:
        """Take in counts of a snapshot. Those of a moment before the last one are over."""
        if at is not None and (self.at is None or at >= self.at):
            self._begin(at)
            self._counted |= counted
            self._ids.number(pa.array([id_ for _, _, id_ in counted], pa.string()))

    def _begin(self, at: int) -> None:
        if at != self.at:
            self.at = at
            self._counted = {}
            self._waiting = []
            self._ids = TextNumbers()

    def number(
        self,
        at: Rows,
        rules: Rows | None,
        times: npt.NDArray[np.int64],
        keys: npt.NDArray[np.int32],
        ids: Texts,
        id_of: Rows,
        last: int,
        alarms: npt.NDArray[np.bool_] | None = None,
    ) -> Rows:
        """The numbers of outputs: each comes from a reading, `at`; all else is by output.

        `last` is the last moment that was read: what was put out then may go on in the next batch.
        Those that are `alarms` have all outputs of a correlation, key and moment in one reading,
        and their text comes first; so only an event that has the same one for an id is mistaken
        for them.
        """
        again = at[1:] == at[:-1]
        heads = np.r_[0, np.flatnonzero(~again) + 1]
        if rules is not None:
            again &= rules[1:] == rules[:-1]
        numbers = np.ones(len(at), np.int64)
        if again.any():
            firsts = np.r_[0, np.flatnonzero(~again) + 1]
            sizes = np.diff(np.r_[firsts, len(at)])
            numbers = np.arange(1, len(at) + 1) - np.repeat(firsts, sizes)
        contested = self._contested(heads, times, keys, ids, id_of, alarms)
        if contested.any():
            sizes = np.diff(np.r_[heads, len(at)])
            chosen = np.flatnonzero(np.repeat(contested, sizes))
            of = np.zeros(len(at), np.int64) if rules is None else rules
            self._count_each(chosen, of, times, keys, ids, id_of, numbers)
        if times[-1] == last:
            self._begin(last)
            # Outputs are in the order of their times.
            here = slice(int(np.searchsorted(times, last)), None)
            of = np.zeros(len(at), np.int64) if rules is None else rules
            texts = ids.take(id_of[here])
            self._waiting.append((of[here].copy(), keys[here], texts, numbers[here]))
            self._ids.number(texts)
        return numbers

    def _contested(
        self, heads: Rows, times: Any, keys: Any, ids: Texts, id_of: Rows, alarms: Any
    ) -> npt.NDArray[np.bool_]:
        """For each event that puts out: whether its id may come twice at its time and key."""
        when = times[heads]
        contested = np.zeros(len(heads), np.bool_)
        same = when[1:] == when[:-1]
        if alarms is not None and same.any():
            by_alarms = alarms[heads]
            names = TextNumbers()
            names.number(ids.take(np.zeros(1, np.int64)))
            events = names.number(ids.take(id_of[heads[~by_alarms]]), grow=False)
            if not (events == 0).any():
                same &= ~(by_alarms[1:] & by_alarms[:-1])
        if same.any():
            chosen = np.flatnonzero(np.r_[same, False] | np.r_[False, same])
            names = TextNumbers()
            numbers = names.number(ids.take(id_of[heads[chosen]]))
            if names.count < len(chosen):
                pairs = numbers.astype(np.int64) << 32 | keys[heads[chosen]]
                _, places, counts = np.unique(pairs, return_inverse=True, return_counts=True)
                contested[chosen] = counts[places] > 1
        if self.at is not None:
            chosen = np.flatnonzero(when == self.at)
            if chosen.size:
                known = self._ids.number(ids.take(id_of[heads[chosen]]), grow=False)
                contested[chosen] |= known >= 0
        return contested

    def _count_each(
        self, chosen: Rows, rules: Any, times: Any, keys: Any, ids: Texts, id_of: Rows, numbers: Any
    ) -> None:
        counted = {(*known, self.at): count for known, count in self.counted.items()}
        for place, id_ in zip(chosen.tolist(), ids.take(id_of[chosen]).to_pylist(), strict=True):
            known = (int(rules[place]), int(keys[place]), id_, int(times[place]))
            counted[known] = counted.get(known, 0) + 1
            numbers[place] = counted[known]
