"""The states of many rules on tables of their own, as one: a *joint state* for each key.

In come the lists that the rows of a batch are in (`row_lists`) and their keys; out go firings, a
limited number at a time. A joint state has a state for each rule, and a number. Where a combination
of lists (`combinations`) takes a joint state is worked out once, over all rules that read it, and
from then on costs as much as a move of one rule. Rules that read the same events are in few joint
states together, however many they could be in.

What a port is bound to is not kept for each rule: without a window, and with labels that are never
aborted, a port that is bound to the last event of its stretch is bound to the last that it wants
under its key, whoever asks. Past `MOST_CELLS` the joint states that no key is in are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch import joint_kernels
from ensue.engine.batch.column import Rows
from ensue.engine.batch.combinations import Combinations
from ensue.engine.batch.last_events import LastEvents
from ensue.engine.batch.row_lists import RowNumbers
from ensue.engine.batch.rule_tables import RuleTables
from ensue.engine.batch.walks import Firings, Patience, TableWalk
from ensue.engine.core.numbering import Numbers, taller

MOST_CELLS = 1 << 22
"""States of rules in all joint states, and joint moves; past it there is a clearing."""
FIRINGS_AT_ONCE = 1 << 17
_KEYS_AT_ONCE = 1 << 14


class JointStates:
    """`lists` are those of each rule's ports; those past its ports are of no list."""

    def __init__(self, tables: RuleTables, lists: npt.NDArray[np.int64], list_count: int) -> None:
        self.tables = tables
        self.most_cells = MOST_CELLS
        self.rules = len(lists)
        self._combinations = Combinations(lists, list_count)
        self._states = np.zeros(0, np.int32)
        self._last = LastEvents(np.where(lists < list_count, lists, 0), list_count)
        self._taken_back: dict[int, npt.NDArray[np.int32]] = {}
        self._wanted = np.zeros((self.rules, 3), np.int64)
        self._patience = Patience()
        self._forgotten = self._combinations.forgotten
        self.impatient: set[int] = set()
        """The rules whose tables keep growing: they are better off on their own."""
        self._width = 8
        self._begin(tables.initial.reshape(1, -1))

    def _begin(self, vectors: npt.NDArray[np.int32]) -> None:
        """Know these joint states, and no moves between them."""
        size = max(64, 2 * len(vectors))
        self._count = self._fires = 0
        self._vectors = np.zeros((size, self.rules), np.int32)
        self._hashes = np.zeros(size, np.uint64)
        self._place()
        self._joint = np.full((size, self._width, 2), -1, np.int32)
        self._fire_from = np.zeros(256, np.int64)
        self._fire_rules = np.zeros(4 * self.rules, np.int32)
        self._fire_actions = np.zeros(4 * self.rules, np.int32)
        self._number(vectors)

    def _place(self) -> None:
        self._slots = np.zeros(1 << (2 * len(self._vectors) - 1).bit_length(), np.int32)
        joint_kernels.place_vectors(self._slots, self._hashes, self._count)

    @property
    def size(self) -> int:
        """How many states of rules are held, of those that some key is in or was in."""
        return self._vectors.size

    @property
    def places(self) -> int:
        return self._last.last.size

    def grow(self, key_count: int) -> None:
        """Have a joint state for every key that is numbered."""
        before = len(self._states)
        if key_count > before:
            size = max(key_count, 2 * before)
            self._states = taller(self._states, size, self._start())
            self._last.grow(size)

    def _start(self) -> int:
        """The joint state of a key that has read nothing."""
        return int(self._number(self.tables.initial.reshape(1, -1))[0])

    def _number(self, vectors: npt.NDArray[np.int32]) -> Numbers:
        out = np.empty(len(vectors), np.int32)
        at = 0
        while True:
            at, self._count = joint_kernels.number_vectors(
                vectors, at, out, self._slots, self._hashes, self._vectors, self._count
            )
            if at == len(vectors):
                return out
            self._more_states()

    def _more_states(self) -> None:
        size = 2 * len(self._vectors)
        self._vectors = taller(self._vectors, size, 0)
        self._hashes = taller(self._hashes, size, 0)
        self._joint = taller(self._joint, size, -1)
        self._place()

    def read(
        self, lists: Sequence[RowNumbers], keys: Numbers, key_count: int, before: int, without: Any
    ) -> Iterator[tuple[Firings, int]]:
        """What fires, and up to which row; ends early where a rule becomes `impatient`.

        `without` counts for each rule the rows that it would read, if they had a key.
        """
        self.grow(key_count)
        self._settle()
        known, count = self._combinations, len(keys)
        marks = known.mark(lists, count)
        numbers = np.empty(count, np.int32)
        at = 0
        while at < count:
            end = known.number(marks, at, numbers)
            self._fit_combinations()
            gone = (keys[at:end] < 0) & (numbers[at:end] >= 0)
            if gone.any():
                known.count_rules(numbers[at:end][gone], without)
            while at < end:
                begin = at
                at, firings = self._walk(numbers[:end], keys, at, before)
                self._patience.events += at - begin
                yield firings, at
                if self.impatient:
                    return

    def _fit_combinations(self) -> None:
        """Have room for the moves of all combinations; forget those of combinations that went."""
        if self._forgotten != self._combinations.forgotten:
            self._forgotten = self._combinations.forgotten
            self._clear()
        if self._combinations.count > self._width:
            before, self._width = self._width, 2 * self._combinations.count
            wider = np.full((len(self._joint), self._width, 2), -1, np.int32)
            wider[:, :before] = self._joint
            self._joint = wider

    def _clear(self) -> None:
        """Forget all moves, and the joint states that no key is in."""
        used, which = np.unique(self._states, return_inverse=True)
        self._states = which.astype(np.int32)
        self._begin(self._vectors[used])

    def _walk(self, numbers: Numbers, keys: Numbers, at: int, before: int) -> tuple[int, Firings]:
        known, tables, last = self._combinations, self.tables, self._last
        room = max(FIRINGS_AT_ONCE, 2 * self.rules)
        rules, rows = np.empty(room, np.int64), np.empty(room, np.int64)
        actions = np.empty(room, np.int64)
        ports = np.empty((room, last.list_of.shape[1]), np.int64)
        begin, fired = at, 0
        while True:
            at, fired, self._count, self._fires, missing = joint_kernels.walk_joint(
                numbers, keys, at, known.entry_from, known.words, known.letters, known.masks,
                known.list_from, known.lists,
                tables.symbol_of, tables.bases, tables.widths, tables.moves,
                self._vectors, self._hashes, self._slots, self._count,
                self._joint, self._fire_from, self._fire_rules, self._fire_actions, self._fires,
                self._states, last.last, last.list_of, last.restored, before,
                rules, rows, actions, ports, fired, self._wanted,
            )  # fmt: skip
            if missing:
                self._fill(missing, at - begin)
            if at == len(numbers) or fired + self.rules > room or self.impatient:
                break
            if not missing:
                self._make_room()
        return at, Firings(
            rows[:fired], actions[:fired], ports[:fired], tables.put_out.table, rules[:fired]
        )

    def _fill(self, missing: int, read: int) -> None:
        for rule, state, letter in self._wanted[:missing].tolist():
            self.tables.fill(rule, state, letter)
            if self._patience.is_over(self.tables.filled[rule], read):
                self.impatient.add(rule)

    def _make_room(self) -> None:
        if self._fires + 2 > len(self._fire_from):
            self._fire_from = taller(self._fire_from, 2 * len(self._fire_from), 0)
        if self._fire_from[self._fires] + self.rules > len(self._fire_rules):
            size = 2 * len(self._fire_rules)
            self._fire_rules = taller(self._fire_rules, size, 0)
            self._fire_actions = taller(self._fire_actions, size, 0)
        if self._count == len(self._vectors):
            if max(self._vectors.size, self._joint.size) > self.most_cells:
                self._clear()
            if 2 * self._count > len(self._vectors):
                self._more_states()

    # --- one rule at a time -----------------------------------------------------------------------

    def stop(self, rule: int) -> None:
        """Leave a rule out from now on."""
        self.impatient.discard(rule)
        self.tables.stop(rule)
        self._vectors[:, rule] = 0
        used, which = np.unique(self._states, return_inverse=True)
        vectors = self._vectors[used]
        self._begin(vectors[:0])
        self._states = self._number(vectors)[which]

    def walk_of(self, rule: int) -> TableWalk:
        """The states and places of one rule, on their own."""
        table = self.tables.filled[rule]
        walk = TableWalk(table)
        walk.grow(len(self._states))
        walk.states[:] = self._vectors[self._states, rule]
        if rule in self._taken_back:
            walk.states[: len(self._taken_back[rule])] = self._taken_back[rule]
        for place, port in self._ports_of_places(rule):
            walk.places[:, place] = self._last.of(rule, port)
        return walk

    def put(self, rule: int, walk: TableWalk) -> None:
        """Take one rule back, of which some keys were restored. Nothing has been read yet."""
        self.grow(len(walk.states))
        self._taken_back[rule] = np.where(walk.states == 0, self.tables.initial[rule], walk.states)
        bound = walk.bound() & (walk.places > 0)
        for place, port in self._ports_of_places(rule):
            readings = np.where(bound[:, place], walk.places[:, place], 0)
            self._last.restore(rule, port, readings)

    def _ports_of_places(self, rule: int) -> list[tuple[int, int]]:
        branches = self.tables.filled[rule].machine_table.machine.branches
        number = self.tables.put_out.port_number
        return [(place, number(rule, port)) for b in branches for place, port, _ in b.places]

    def _settle(self) -> None:
        """Give keys the joint states of all rules that were taken back."""
        if not self._taken_back:
            return
        for first in range(0, len(self._states), _KEYS_AT_ONCE):
            here = slice(first, first + _KEYS_AT_ONCE)
            vectors = self._vectors[self._states[here]]
            for rule, states in self._taken_back.items():
                part = states[here]
                vectors[: len(part), rule] = part
            self._states[here] = self._number(vectors)
        self._taken_back.clear()

    def held(self) -> Rows:
        """The readings that some rule may still be bound to, sorted, each once."""
        return self._last.held()
