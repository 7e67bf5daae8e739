"""The states of many rules on one table, as bits: for each key and state, one bit for each rule.

In come the lists that the rows of a batch are in (`row_lists`) and their keys; out go firings, a
limited number at a time. Rows in the same lists are one *combination*, of which it is worked out
once what each rule reads of it. What a port is bound to is not kept for each rule: as long as a
place is bound, every event that its port wants is bound to it, so it is the last event of its list
under its key, whoever asks.

That holds for most tables and not for all (`bind first`, some labels that are aborted), and a table
of many states has too few rules in each of them. `learn` finds out, before an event is read, and
`numbered` has the other form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import slice_kernels
from ensue.engine.batch.column import Rows
from ensue.engine.batch.combinations import Combinations
from ensue.engine.batch.last_events import LastEvents
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.core.numbering import Numbers
from ensue.engine.core.table import NOT_STARTED, FilledTable
from ensue.machine.model import PortAtom

MOST_TABLE_STATES = 32
FIRINGS_AT_ONCE = 1 << 17


class Moves:
    """The moves of a table for the letters that were met: all of them, worked out in advance."""

    def __init__(self, filled: FilledTable, has_start: bool) -> None:
        self._filled = filled
        self._letters: list[int] = []
        # Without statements before the first case, a key that has not started is at its start.
        first = filled.number(filled.machine_table.first)
        self.initial = NOT_STARTED if has_start else first
        self.begins = np.zeros(257, np.int32)
        self.moves = np.zeros((0, 3), np.uint64)
        machine = filled.machine_table.machine
        self._port_of = {p: port for b in machine.branches for p, port, _ in b.places}

    def learn(self, letters: Sequence[int], bits: dict[Any, int]) -> bool:
        """Work out what these letters do in every state; False if that cannot be said in bits."""
        self._letters = sorted({*self._letters, *letters})
        filled = self._filled
        numbers = filled.number_symbols(np.array(self._letters, np.uint8)).tolist()
        symbols = dict(zip(self._letters, numbers, strict=True))
        state = 0
        while state < len(filled.known):
            if state != NOT_STARTED or self.initial == NOT_STARTED:
                for symbol in numbers:
                    if filled.array[state, symbol, 0] < 0:
                        filled.fill(state, symbol)
            state += 1
            if len(filled.known) > MOST_TABLE_STATES:
                return False
        bound = filled.bound()
        rows: list[tuple[int, int, int]] = []
        for letter in range(256):
            if letter in symbols:
                for state in range(len(filled.known)):
                    following, action, *_ = filled.array[state, symbols[letter]].tolist()
                    if following < 0:
                        continue
                    if not self._binds_what_it_reads(state, letter, symbols[letter], bound, bits):
                        return False
                    if following != state or action:
                        rows.append((state, following, action))
            self.begins[letter + 1] = len(rows)
        self.moves = np.array(rows, np.uint64).reshape(-1, 3)
        return True

    def _binds_what_it_reads(
        self, state: int, letter: int, symbol: int, bound: Any, bits: dict[Any, int]
    ) -> bool:
        """Whether each place that is bound before and needed after is bound to this event."""
        filled = self._filled
        following, action, one, more = filled.array[state, symbol].tolist()
        binds = {one, *filled.bind_places[filled.bind_from[more] : filled.bind_from[more + 1]]}
        return all(
            place in binds
            or not bound[state, place]
            or not (bound[following, place] or action)
            or not letter >> bits[PortAtom(port)] & 1
            for place, port in self._port_of.items()
        )


class SlicedStates:
    """The states of all rules of a group under all keys. `lists` are those of each rule's ports."""

    def __init__(
        self,
        filled: FilledTable,
        lists: npt.NDArray[np.int64],
        list_count: int,
        bit_of: dict[Any, int],
        has_start: bool,
    ) -> None:
        self.rules = len(lists)
        self._filled = filled
        self._bit_of = bit_of
        self._moves = Moves(filled, has_start)
        self._combinations = Combinations(lists, list_count)
        self._known_letters: set[int] = set()
        words = -(-self.rules // 64)
        self._full = np.full(words, np.uint64(2**64 - 1))
        if self.rules % 64:
            self._full[-1] = np.uint64((1 << self.rules % 64) - 1)
        machine = filled.machine_table.machine
        list_of = np.zeros((self.rules, filled.places), np.int64)
        for branch in machine.branches:
            for place, port, _ in branch.places:
                list_of[:, place] = lists[:, bit_of[PortAtom(port)]]
        self._slices = np.zeros((0, words, len(filled.known)), np.uint64)
        self._last = LastEvents(list_of, list_count)

    @property
    def size(self) -> int:
        """How many states of a rule and key it holds, as far as their memory goes."""
        return self.rules * len(self._slices) // 8

    @property
    def places(self) -> int:
        return self._last.last.size

    def grow(self, key_count: int) -> None:
        before, words, states = self._slices.shape
        wanted = len(self._filled.known)
        if key_count > before or wanted > states:
            size = before if key_count <= before else max(key_count, 2 * before)
            slices = np.zeros((size, words, wanted), np.uint64)
            slices[:before, :, :states] = self._slices
            slices[before:, :, self._moves.initial] = self._full
            self._slices = slices
            self._last.grow(size)

    def read(
        self, lists: Sequence[RowNumbers], keys: Numbers, key_count: int, before: int, without: Any
    ) -> Iterator[tuple[Firings, int]]:
        """What fires, and up to which row; ends early where it cannot be said in bits.

        `without` counts for each rule the rows that it would read, if they had a key.
        """
        self.grow(key_count)
        known, count = self._combinations, len(keys)
        marks = known.mark(lists, count)
        numbers = np.empty(count, np.int32)
        at = 0
        while at < count:
            end = known.number(marks, at, numbers)
            letters = known.letters_in_use()
            if not letters <= self._known_letters:
                if not self._moves.learn(sorted(letters), self._bit_of):
                    return
                self._known_letters |= letters
                self.grow(key_count)
            gone = (keys[at:end] < 0) & (numbers[at:end] >= 0)
            if gone.any():
                known.count_rules(numbers[at:end][gone], without)
            while at < end:
                at, firings = self._walk(numbers[:end], keys, at, before)
                yield firings, at

    def _walk(self, numbers: Numbers, keys: Numbers, at: int, before: int) -> tuple[int, Firings]:
        known, filled, last = self._combinations, self._filled, self._last
        room = max(FIRINGS_AT_ONCE, 2 * self.rules)
        rules, rows = np.empty(room, np.int64), np.empty(room, np.int64)
        actions = np.empty(room, np.int64)
        places = np.empty((room, filled.places), np.int64)
        at, fired = slice_kernels.walk_slices(
            numbers, keys, at, known.entry_from, known.words, known.letters, known.masks,
            known.list_from, known.lists, self._moves.begins, self._moves.moves,
            self._slices.reshape(-1), *self._slices.shape[1:],
            last.last, last.list_of, last.restored, before,
            rules, rows, actions, places, self.rules,
        )  # fmt: skip
        return at, Firings(
            rows[:fired], actions[:fired], places[:fired], filled.actions, rules[:fired]
        )

    def walk_of(self, rule: int) -> TableWalk:
        """The states and places of one rule, on their own."""
        walk = TableWalk(self._filled)
        walk.grow(len(self._slices))
        word, bit = rule >> 6, np.uint64(1 << (rule & 63))
        for state in range(self._slices.shape[2]):
            walk.states[self._slices[:, word, state] & bit != 0] = state
        for place in range(self._filled.places):
            walk.places[:, place] = self._last.of(rule, place)
        return walk

    def put(self, rule: int, walk: TableWalk) -> bool:
        """Take one rule back, of which some keys were restored; False if there is no room for it.

        Nothing has been read in between.
        """
        if len(self._filled.known) > MOST_TABLE_STATES:
            return False
        self.grow(len(walk.states))
        word, bit = rule >> 6, np.uint64(1 << (rule & 63))
        states = walk.states
        if self._moves.initial != NOT_STARTED:
            states = np.where(states == NOT_STARTED, self._moves.initial, states)
        for state in range(self._slices.shape[2]):
            self._slices[:, word, state] &= ~bit
            self._slices[states == state, word, state] |= bit
        for place in range(self._filled.places):
            self._last.restore(rule, place, walk.places[:, place])
        # The table may have states now for which the letters have not been worked out.
        self._known_letters.clear()
        return True

    def held(self) -> Rows:
        """The readings that some rule may still be bound to, sorted, each once."""
        return self._last.held()
