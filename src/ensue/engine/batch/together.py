"""Correlations that are alike run together: a thousand of them in one pass over a batch.

Two are alike if they differ in their names and in what their ports ask of an event, and in nothing
else: then they have one machine, one table and the same statements. A `RuleGroup` holds what they
share (the table, the numbers of keys, the events that are remembered, the maker of outputs) and
the states of all, by rule and key. `Member` is one of them to the rest of the engine: its state is
saved and restored as that of any other correlation.

Feeding others, or being fed, is not for groups; nor are windows, several ways to ask for a key and
predicates inside an expression. Past `MOST_STATES` and past the budget of the table a group says
that it has to be left, and the engine lets each of its members run on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensue.engine.batch import rule_kernels
from ensue.engine.batch.actions import EclActions, FilterActions
from ensue.engine.batch.correlations import (
    SMALLEST_CLEARING,
    TABLE_STATES,
    Path,
    Positions,
    Segment,
    asked_of,
    held_by,
    place_count,
)
from ensue.engine.batch.filled import FilledTable
from ensue.engine.batch.keys import Keys, Numbers
from ensue.engine.batch.made import Made, OutputMaker, Readings
from ensue.engine.batch.remembered import Remembered
from ensue.engine.batch.row_lists import RowLists, RowNumbers
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.counts import Counts
from ensue.events.types import TypeSystem
from ensue.lang.syntax import CommonKey, Correlation, EventPort, FilterCorrelation
from ensue.machine.determinise import Table
from ensue.machine.model import Machine, PortAtom, PredicateAtom

MOST_PORTS = 8
MOST_STATES = 1 << 25
"""Rules times keys, past which a group has too many states that nobody is in."""


def likeness(correlation: Correlation) -> Correlation | None:
    """What correlations that can run together have in common; None if this one cannot."""
    ports = correlation.ports
    if len(ports) > MOST_PORTS:
        return None
    if not all(isinstance(key, CommonKey) for key in correlation.clauses.by):
        return None
    bare = tuple(EventPort("", port.name) for port in ports if isinstance(port, EventPort))
    return replace(correlation, name="", ports=bare) if len(bare) == len(ports) else None


def runs_together(path: Path, machine: Machine | None) -> bool:
    return (
        path.name == "table"
        and machine is not None
        and not any(isinstance(atom, PredicateAtom) for atom in machine.atoms)
    )


@dataclass
class Member:
    """One correlation of a group; `number` is its place in it."""

    name: str
    path: Path
    number: int
    group: RuleGroup
    walk: TableWalk

    @property
    def keys(self) -> Keys:
        return self.group.keys

    @property
    def maker(self) -> OutputMaker:
        return self.group.maker

    @property
    def remembered(self) -> Remembered:
        return self.group.remembered

    @property
    def has_start(self) -> bool:
        return self.group.has_start

    def make_room(self) -> None:
        self.group.grow()


class RuleGroup:
    """Correlations that are alike, in the order of their library; `numbers` are theirs in it."""

    def __init__(
        self,
        correlations: Sequence[Correlation],
        numbers: Sequence[int],
        path: Path,
        machine: Machine,
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        one = correlations[0]
        self.numbers = np.array(numbers)
        self.keys = Keys(bool(one.clauses.by))
        self.most_states = MOST_STATES
        self.table_states = TABLE_STATES
        self._counts = counts
        self._key_names = [key.name for key in one.clauses.by if isinstance(key, CommonKey)]
        self._row_lists = RowLists(types)
        ports = [[p for p in each.ports if isinstance(p, EventPort)] for each in correlations]
        self._lists = np.array(
            [[self._row_lists.number(port) for port in each] for each in ports], np.int64
        )
        # Up to three lists are merged in the quickest way if they are three: others are empty.
        padding = ((0, 0), (0, max(0, 3 - len(one.ports))))
        self._lists = np.pad(self._lists, padding, constant_values=self._row_lists.count)
        bit_of = {PortAtom(port.name): bit for bit, port in enumerate(one.ports)}
        actions: FilterActions | EclActions
        bind_first = self.has_start = False
        if isinstance(one, FilterCorrelation):
            bind_first = one.clauses.bind == "first"
            self.has_start = bool(one.initially)
            actions = FilterActions(one, machine)
        else:
            actions = EclActions(one, machine)
        table = Table(machine, TABLE_STATES)
        self._filled = FilledTable(table, actions, bit_of, place_count(machine))
        self._symbol_of = np.full(1 << MOST_PORTS, -1, np.int32)
        self.remembered = Remembered(*asked_of(one))
        names = [each.name for each in correlations]
        self.maker = OutputMaker(names, bind_first, self.keys, types, self.remembered)
        self.members = [
            Member(name, path, number, self, TableWalk(self._filled))
            for number, name in enumerate(names)
        ]
        self._states = np.zeros((len(names), 0), np.int32)
        self._places = np.zeros((self._filled.places + 1, len(names), 0), np.int64)

    def grow(self) -> None:
        """Have a state for every key that is numbered."""
        before = self._states.shape[1]
        if self.keys.count > before:
            size = max(self.keys.count, 2 * before)
            # Zeros that nobody has written to take no memory.
            states = np.zeros((len(self.members), size), np.int32)
            places = np.zeros((*self._places.shape[:2], size), np.int64)
            states[:, :before] = self._states
            places[:-1, :, :before] = self._places[:-1]
            self._states, self._places = states, places
            for number, member in enumerate(self.members):
                member.walk.states = states[number]
                member.walk.places = places[:, number].T

    @property
    def is_too_large(self) -> bool:
        """Whether its members are better off on their own."""
        return (
            len(self.members) * self.keys.count > self.most_states
            or len(self._filled.known) > self.table_states
        )

    def read(self, segment: Segment) -> tuple[Made, Positions]:
        """What all of them put out, and the place in the stream of the reading behind each."""
        batch = segment.batch
        lists = self._row_lists.of(batch)
        keys = self._number_keys(segment, lists)
        first = self.remembered.next
        self.remembered.add([batch], np.arange(len(batch)), None)
        made = self.maker.make(self._walk(lists, keys, first), Readings(first, batch.times, keys))
        return made, segment.positions[made.at]

    def _number_keys(self, segment: Segment, lists: Sequence[RowNumbers]) -> Numbers:
        """The key of each row that anyone reads."""
        batch = segment.batch
        if not self.keys.keyed:
            return np.zeros(len(batch), np.int32)
        wanted = np.zeros(len(batch), np.bool_)
        for each in lists:
            wanted[each] = True
        rows = np.flatnonzero(wanted)
        keys = np.full(len(batch), -1, np.int32)
        if rows.size:
            columns = [batch.column((name,)) for name in self._key_names]
            keys[rows] = self.keys.number(columns, rows)
        return keys

    def _walk(self, lists: Sequence[RowNumbers], keys: Numbers, before: int) -> Firings:
        self.grow()
        by_key, rank_of = rule_kernels.rows_by_key(keys, self.keys.count)
        key_of = keys[by_key]
        end = np.array([len(keys)], np.int32)
        ranks = np.concatenate([p for each in lists for p in (np.sort(rank_of[each]), end)] + [end])
        list_from = np.cumsum([0, *(len(each) + 1 for each in lists)])
        merged, bits = np.empty(len(keys), np.int32), np.empty(len(keys), np.uint8)
        without_key = np.zeros(len(self.members), np.int64)
        filled, out = self._filled, _Fired(max(1024, len(keys) // 8), self._filled.places)
        rule = at = fired = 0
        while True:
            rule, at, fired = rule_kernels.walk_rules(
                ranks, list_from, self._lists, merged, bits, rule, at, by_key, key_of,
                self._symbol_of, filled.array, filled.bind_from, filled.bind_places,
                self._states, self._places, before,
                out.rules, out.at, out.actions, out.places, fired, without_key,
            )  # fmt: skip
            if rule == len(self.members):
                break
            symbol = int(filled.number_symbols(bits[at : at + 1])[0])
            self._symbol_of[bits[at]] = symbol
            state = int(self._states[rule, key_of[merged[at]]])
            if filled.array[state, symbol, 0] < 0:
                filled.fill(state, symbol)
            elif fired == len(out.at):
                out.grow()
        for number in np.flatnonzero(without_key).tolist():
            self._counts.without_key[self.members[number].name] += int(without_key[number])
        # Rules come one after the other, and a row has one key: in the order of rows they stay so.
        order, _ = rule_kernels.rows_by_key(out.at[:fired].astype(np.int32), len(keys))
        return Firings(
            out.at[order], out.actions[order], out.places[order], filled.actions, out.rules[order]
        )

    def clear_up(self) -> None:
        """Let go of events that no key holds any more, if there are enough of them."""
        if self.remembered.recent_rows > max(SMALLEST_CLEARING, self._states.size // 4):
            self.remembered.forget_all_but(held_by([member.walk for member in self.members]))


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
