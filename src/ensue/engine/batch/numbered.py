"""The states of many rules on one table, as numbers: one for each rule and key.

The form for tables of any size, and for what is bound in any way; `slices` has the one that costs
less where it will do. In come the lists that the rows of a batch are in and their keys, out go
firings. A rule takes what it reads through the table rule by rule, so that an event costs as much
as there are rules that read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import rule_kernels
from ensue.engine.batch.column import Rows
from ensue.engine.batch.correlations import held_by
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.core.numbering import Numbers
from ensue.engine.core.table import FilledTable

_MOST_BITS = 8


class NumberedStates:
    """The states and places of all rules of a group, by rule and key."""

    def __init__(self, filled: FilledTable, lists: npt.NDArray[np.int64], list_count: int) -> None:
        rules, ports = lists.shape
        self._filled = filled
        # Up to three lists are merged in the quickest way if they are three: others are empty.
        self._lists = np.pad(lists, ((0, 0), (0, max(0, 3 - ports))), constant_values=list_count)
        self._symbol_of = np.full(1 << _MOST_BITS, -1, np.int32)
        self._states = np.zeros((rules, 0), np.int32)
        self._places = np.zeros((filled.places + 1, rules, 0), np.int64)
        self._walks = [TableWalk(filled) for _ in range(rules)]

    @property
    def size(self) -> int:
        return self._states.size

    @property
    def places(self) -> int:
        return self._places.size

    def grow(self, key_count: int) -> None:
        """Have a state for every key that is numbered."""
        before = self._states.shape[1]
        if key_count > before:
            size = max(key_count, 2 * before)
            # Zeros that nobody has written to take no memory.
            states = np.zeros((len(self._walks), size), np.int32)
            places = np.zeros((*self._places.shape[:2], size), np.int64)
            states[:, :before] = self._states
            places[:-1, :, :before] = self._places[:-1]
            self._states, self._places = states, places
            for number, walk in enumerate(self._walks):
                walk.states = states[number]
                walk.places = places[:, number].T

    def take_over(self, walks: Iterable[TableWalk], key_count: int) -> None:
        """Go on from what the rules were in another form."""
        self.grow(key_count)
        for number, walk in enumerate(walks):
            self._walks[number].states[:key_count] = walk.states[:key_count]
            self._walks[number].places[:key_count, :-1] = walk.places[:key_count, :-1]

    def read(
        self, lists: Sequence[RowNumbers], keys: Numbers, key_count: int, before: int, without: Any
    ) -> Iterator[tuple[Firings, int]]:
        """What fires, and up to which row; `without` counts what each rule finds without a key."""
        self.grow(key_count)
        by_key, rank_of = rule_kernels.rows_by_key(keys, key_count)
        key_of = keys[by_key]
        last = np.array([len(keys)], np.int32)
        ranks = np.concatenate([p for e in lists for p in (np.sort(rank_of[e]), last)] + [last])
        list_from = np.cumsum([0, *(len(each) + 1 for each in lists)])
        merged, bits = np.empty(len(keys), np.int32), np.empty(len(keys), np.uint8)
        filled, out = self._filled, _Fired(max(1024, len(keys) // 8), self._filled.places)
        rule = at = fired = 0
        while True:
            rule, at, fired = rule_kernels.walk_rules(
                ranks, list_from, self._lists, merged, bits, rule, at, by_key, key_of,
                self._symbol_of, filled.array, filled.bind_from, filled.bind_places,
                self._states, self._places, before,
                out.rules, out.at, out.actions, out.places, fired, without,
            )  # fmt: skip
            if rule == len(self._walks):
                break
            symbol = int(filled.number_symbols(bits[at : at + 1])[0])
            self._symbol_of[bits[at]] = symbol
            state = int(self._states[rule, key_of[merged[at]]])
            if filled.array[state, symbol, 0] < 0:
                filled.fill(state, symbol)
            elif fired == len(out.at):
                out.grow()
        # Rules come one after the other, and a row has one key: in the order of rows they stay so.
        order, _ = rule_kernels.rows_by_key(out.at[:fired].astype(np.int32), len(keys))
        firings = Firings(
            out.at[order], out.actions[order], out.places[order], filled.actions, out.rules[order]
        )
        yield firings, len(keys)

    def walk_of(self, rule: int) -> TableWalk:
        """The states and places of one rule: those that it runs on."""
        return self._walks[rule]

    def held(self) -> Rows:
        """The readings that some rule is bound to, sorted, each once."""
        return held_by(self._walks)


class _Fired:
    """Arrays that firings are written to."""

    def __init__(self, size: int, places: int) -> None:
        self.rules: Any = np.empty(size, np.int64)
        self.at: Any = np.empty(size, np.int64)
        self.actions: Any = np.empty(size, np.int64)
        self.places: Any = np.empty((size, places), np.int64)

    def grow(self) -> None:
        self.rules, self.at, self.actions, self.places = (
            np.concatenate([each, np.empty_like(each)])
            for each in (self.rules, self.at, self.actions, self.places)
        )
