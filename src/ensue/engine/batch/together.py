"""Correlations that are alike run together: a thousand of them in one pass over a batch.

Two are alike if they differ in their names, in the names of their ports and in what those ask of an
event, and in nothing else: then they have one machine, one table and the same statements. A
`RuleGroup` holds what they share (the table, the numbers of keys, the events that are remembered,
the maker of outputs) and the states of all: as bits where that will do (`slices`), else as numbers
(`numbered`). `Member` is one of them to the rest of the engine: its state is saved and restored as
that of any other correlation.

Feeding others, or being fed, is not for groups; nor are windows, several ways to ask for a key and
predicates inside an expression. Past `MOST_STATES` and past the budget of the table a group says
that it has to be left, and the engine lets each of its members run on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ensue.engine.batch.actions import EclActions, FilterActions
from ensue.engine.batch.correlations import (
    SMALLEST_CLEARING,
    TABLE_STATES,
    Path,
    Segment,
    asked_of,
    place_count,
)
from ensue.engine.batch.filled import FilledTable
from ensue.engine.batch.keys import Keys, Numbers
from ensue.engine.batch.made import MadeInTurn
from ensue.engine.batch.making import OutputMaker, Readings
from ensue.engine.batch.numbered import NumberedStates
from ensue.engine.batch.remembered import Remembered
from ensue.engine.batch.row_lists import RowLists, RowNumbers
from ensue.engine.batch.slices import SlicedStates
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.counts import Counts
from ensue.events.types import TypeSystem
from ensue.lang.expressions import Name
from ensue.lang.syntax import (
    CommonKey,
    Correlation,
    EventPort,
    FilterCorrelation,
    Holds,
    PortRef,
    PushPort,
)
from ensue.machine.determinise import Table
from ensue.machine.model import Machine, PortAtom, PredicateAtom

MOST_PORTS = 8
MOST_STATES = 1 << 25
"""Rules times keys, past which a group has too many states that nobody is in.

As bits they take an eighth of the memory or less, and count as that.
"""


def likeness(correlation: Correlation) -> Correlation | None:
    """What correlations that can run together have in common; None if this one cannot."""
    ports = correlation.ports
    if len(ports) > MOST_PORTS:
        return None
    if not all(isinstance(key, CommonKey) for key in correlation.clauses.by):
        return None
    if not all(isinstance(port, EventPort) for port in ports):
        return None
    numbered = {port.name: f"port {number}" for number, port in enumerate(ports)}
    bare = tuple(EventPort("", name) for name in numbered.values())
    said: Correlation = with_ports(correlation, numbered)
    return replace(said, name="", ports=bare)


def with_ports(said: Any, names: Mapping[str, str]) -> Any:
    """The same with its ports called by other names."""
    match said:
        case PortRef(name):
            return PortRef(names[name])
        case PushPort(port):
            return PushPort(names[port])
        case Name((port, *attributes)) if port in names:
            return Name((names[port], *attributes))
        case Holds():
            # A predicate inside an expression asks the event that is read, and no port.
            return said
        case tuple():
            return tuple(with_ports(each, names) for each in said)
        case _ if is_dataclass(said) and not isinstance(said, type):
            changed = {}
            for each in fields(said):
                before = getattr(said, each.name)
                if each.compare and (isinstance(before, tuple) or is_dataclass(before)):
                    changed[each.name] = with_ports(before, names)
            return replace(said, **changed)
        case _:
            return said


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

    @property
    def walk(self) -> TableWalk:
        """Its states and places; what is changed in them goes back by `put_back`."""
        self.group.grow()
        return self.group.states.walk_of(self.number)

    def put_back(self, walk: TableWalk) -> None:
        self.group.put_back(self.number, walk)

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
        self.remembered = Remembered(*asked_of(one))
        names = [each.name for each in correlations]
        self.maker = OutputMaker(names, bind_first, self.keys, types, self.remembered)
        self.members = [Member(name, path, number, self) for number, name in enumerate(names)]
        self.states: SlicedStates | NumberedStates = SlicedStates(
            self._filled, self._lists, self._row_lists.count, bit_of, self.has_start
        )

    def grow(self) -> None:
        """Have a state for every key that is numbered."""
        self.states.grow(self.keys.count)

    @property
    def is_too_large(self) -> bool:
        """Whether its members are better off on their own."""
        return self.states.size > self.most_states or len(self._filled.known) > self.table_states

    def read(self, segment: Segment) -> MadeInTurn:
        """What all of them put out, by the rows of the segment."""
        batch = segment.batch
        lists = self._row_lists.of(batch)
        keys = self._number_keys(segment, lists)
        first = self.remembered.next
        self.remembered.add_all(batch)
        return MadeInTurn(
            [
                self.maker.make(firings, Readings(first, batch.times[:end], keys[:end]))
                for firings, end in self._walk(lists, keys, first)
                if len(firings.at)
            ]
        )

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

    def _walk(
        self, lists: Sequence[RowNumbers], keys: Numbers, before: int
    ) -> Iterator[tuple[Firings, int]]:
        """What fires in the rows of a batch, and up to which row, some at a time."""
        without_key = np.zeros(len(self.members), np.int64)
        read = 0
        for firings, read in self.states.read(lists, keys, self.keys.count, before, without_key):
            yield firings, read
        if read < len(keys):
            rest = [each[each >= read] for each in lists]
            self._use_numbers()
            yield from self.states.read(rest, keys, self.keys.count, before, without_key)
        for number in np.flatnonzero(without_key).tolist():
            self._counts.without_key[self.members[number].name] += int(without_key[number])

    def _use_numbers(self) -> None:
        """Hold the states as numbers from now on."""
        numbered = NumberedStates(self._filled, self._lists, self._row_lists.count)
        walks = (self.states.walk_of(number) for number in range(len(self.members)))
        numbered.take_over(walks, self.keys.count)
        self.states = numbered

    def put_back(self, number: int, walk: TableWalk) -> None:
        """Take in what was restored for one of them, before anything is read."""
        if isinstance(self.states, SlicedStates) and not self.states.put(number, walk):
            self._use_numbers()
            self.states.walk_of(number).states[: len(walk.states)] = walk.states
            self.states.walk_of(number).places[: len(walk.states)] = walk.places

    def clear_up(self) -> None:
        """Let go of events that no key holds any more, if there are enough of them."""
        if self.remembered.recent_rows > max(SMALLEST_CLEARING, self.states.size // 4):
            self.remembered.forget_all_but(self.states.held())
