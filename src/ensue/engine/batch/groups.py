"""Correlations that run in one pass over a batch: what any group of them is made of.

A group numbers the keys of a batch and finds the rows that its ports want once for all of its
members, and makes all of their outputs at once. How the states of its members are held, and how
they move, is what kinds of groups differ in: `together` has correlations that are alike, `abreast`
those that are not, `windowed` those with windows, `alarmed` those with timers. `Member` is one of
them to the rest of the engine: its state is saved and restored as that of any other correlation.

Feeding others, or being fed, is not for groups; nor are several ways to ask for a key and
predicates inside an expression.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.actions import EclActions, FilterActions
from ensue.engine.batch.bit_table import BitTable
from ensue.engine.batch.column import Rows
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
from ensue.engine.batch.ordered import FilledWindow, OrderedTable
from ensue.engine.batch.remembered import Remembered
from ensue.engine.batch.row_lists import RowLists, RowNumbers
from ensue.engine.batch.timers import FilledTimed, Timers
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.counts import Counts
from ensue.events.nesting import path_of
from ensue.events.types import TypeSystem
from ensue.lang.syntax import CommonKey, Correlation, EventPort, FilterCorrelation
from ensue.machine.model import Machine, PortAtom, PredicateAtom

Company = tuple[tuple[str, ...], bool]
"""A key, and whether whole events are sent on."""

MOST_PORTS = 8
"""So many have room in a letter: one bit for each port of a rule."""
FEWEST_FIRINGS = 1 << 14
"""Fewer wait for those of the next rows of a batch before outputs are made of them."""
MOST_STATES = 1 << 25
"""Rules times keys, past which a group has too many states that nobody is in."""


def common_key(correlation: Correlation) -> tuple[str, ...] | None:
    """The names of a key that all ports share; None for what groups do not read."""
    if not all(isinstance(port, EventPort) for port in correlation.ports):
        return None
    return common_key_of_events(correlation)


def common_key_of_events(correlation: Correlation) -> tuple[str, ...] | None:
    """The same with timers among the ports: those have no key."""
    keys, ports = correlation.clauses.by, correlation.ports
    if sum(isinstance(port, EventPort) for port in ports) > MOST_PORTS:
        return None
    if not all(isinstance(key, CommonKey) for key in keys):
        return None
    return tuple(key.name for key in keys if isinstance(key, CommonKey))


def bound_by_last(correlation: Correlation, machine: Machine | None) -> Company | None:
    """What correlations of different shapes have in common that can go through a batch together.

    None for one whose ports are bound to more than the last event that they want: where labels are
    aborted, or with `bind first`.
    """
    key = common_key_of_events(correlation)
    if key is None or machine is None or machine.switches:
        return None
    if isinstance(correlation, FilterCorrelation) and correlation.clauses.bind == "first":
        return None
    # Where some send on whole events, those are kept: of others only what they ask for.
    _, whole = asked_of(correlation)
    return key, whole


def remembered_by(correlations: Sequence[Correlation]) -> tuple[Remembered, list[bool]]:
    """What is kept of events for a company, and which of them say something at their start."""
    asked = [asked_of(each) for each in correlations]
    starts = [isinstance(c, FilterCorrelation) and bool(c.initially) for c in correlations]
    return Remembered([name for names, _ in asked for name in names], asked[0][1]), starts


def is_on_table(path: Path, machine: Machine | None) -> bool:
    """Whether it runs on a table of its ports alone."""
    return (
        path.name == "table"
        and machine is not None
        and not any(isinstance(atom, PredicateAtom) for atom in machine.atoms)
    )


def table_of_ports(correlation: Correlation, machine: Machine) -> FilledTable:
    """An empty table whose events are told by the ports that they match."""
    ports = [port for port in correlation.ports if isinstance(port, EventPort)]
    bits: dict[Any, int] = {PortAtom(port.name): bit for bit, port in enumerate(ports)}
    places = place_count(machine)
    actions: FilterActions | EclActions
    if isinstance(correlation, FilterCorrelation):
        actions = FilterActions(correlation, machine)
    else:
        actions = EclActions(correlation, machine)
    timers = Timers(correlation, machine)
    table = OrderedTable(machine) if machine.window is not None else BitTable(machine, TABLE_STATES)
    if len(timers):
        return FilledTimed(table, actions, bits, places, timers)
    kind = FilledTable if machine.window is None else FilledWindow
    return kind(table, actions, bits, places)


class States(Protocol):
    """The states of all members of a group, under all keys."""

    @property
    def size(self) -> int: ...

    @property
    def places(self) -> int:
        """How many readings they may be bound to."""

    def grow(self, key_count: int) -> None: ...

    def walk_of(self, rule: int) -> TableWalk | WindowWalk: ...

    def held(self) -> Rows: ...


@dataclass
class Member:
    """One correlation of a group; `number` is its place in it."""

    name: str
    path: Path
    number: int
    group: Group
    has_start: bool

    @property
    def walk(self) -> TableWalk | WindowWalk:
        """Its states and places; what is changed in them goes back by `put_back`."""
        self.group.grow()
        return self.group.states.walk_of(self.number)

    def put_back(self, walk: TableWalk | WindowWalk) -> None:
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

    def make_room(self) -> None:
        self.group.grow()

    @property
    def has_room(self) -> bool:
        """Whether its group can hold the keys that there are by now, if it can be left for that."""
        return not isinstance(self.group, LooseGroup) or not self.group.is_too_large


class Group(ABC):
    """Correlations in the order of their library; `numbers` are theirs in it."""

    states: States

    def __init__(
        self,
        correlations: Sequence[Correlation],
        numbers: Sequence[int],
        path: Path,
        types: TypeSystem,
        counts: Counts,
        remembered: Remembered,
        starts: Iterable[bool],
        bind_first: bool,
    ) -> None:
        self.numbers = np.array(numbers)
        self._key_names = common_key_of_events(correlations[0]) or ()
        self.keys = Keys(bool(self._key_names))
        self.most_states = MOST_STATES
        self.remembered = remembered
        self._counts = counts
        self._row_lists = RowLists(types)
        ports = [[p for p in each.ports if isinstance(p, EventPort)] for each in correlations]
        lists = [[self._row_lists.number(port) for port in each] for each in ports]
        width = max(1, *(len(each) for each in lists))
        none = self._row_lists.count
        self._lists = np.array([each + [none] * (width - len(each)) for each in lists], np.int64)
        names = [each.name for each in correlations]
        self.maker = OutputMaker(names, bind_first, self.keys, types, remembered)
        self.members: Mapping[str, Member] = {
            name: Member(name, path, number, self, has_start)
            for number, (name, has_start) in enumerate(zip(names, starts, strict=True))
        }

    def grow(self) -> None:
        """Have a state for every key that is numbered."""
        self.states.grow(self.keys.count)

    @property
    @abstractmethod
    def is_too_large(self) -> bool:
        """Whether its members are better off on their own."""

    @abstractmethod
    def put_back(self, number: int, walk: TableWalk | WindowWalk) -> None:
        """Take in what was restored for one of them, before anything is read."""

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
            columns = [batch.column(path_of(name)) for name in self._key_names]
            keys[rows] = self.keys.number(columns, rows)
        return keys

    def _count(self, without: npt.NDArray[np.int64]) -> None:
        """Add the rows that each member would have read, if they had a key."""
        for member in self.members.values():
            if without[member.number]:
                self._counts.without_key[member.name] += int(without[member.number])

    def clear_up(self) -> None:
        """Let go of events that no key holds any more, if there are enough of them."""
        if self.remembered.recent_rows > max(SMALLEST_CLEARING, self.states.places // 2):
            self.remembered.forget_all_but(self.states.held())


class RowGroup(Group):
    """A group that nothing but the rows of a batch moves; those with timers also have a clock."""

    @abstractmethod
    def _walk(
        self,
        lists: Sequence[RowNumbers],
        keys: Numbers,
        times: npt.NDArray[np.int64],
        before: int,
        without: Any,
    ) -> Iterator[tuple[Firings, int]]:
        """What fires in the rows of a batch, and up to which row, some at a time.

        `without` counts for each member the rows that it would read, if they had a key.
        """

    def read(self, segment: Segment) -> tuple[MadeInTurn, int]:
        """What all of them put out, by the rows of the segment, and how many rows were read."""
        batch = segment.batch
        lists = self._row_lists.of(batch)
        keys = self._number_keys(segment, lists)
        first, end = self.remembered.next, 0
        self.remembered.add_all(batch)
        without = np.zeros(len(self.numbers), np.int64)
        made = []
        for firings, end in in_larger_parts(self._walk(lists, keys, batch.times, first, without)):
            if len(firings.at):
                read = Readings(first, batch.times[:end], keys[:end])
                made.append(self.maker.make(firings, read))
        self._count(without)
        return MadeInTurn(made), end


def in_larger_parts(walk: Iterable[tuple[Firings, int]]) -> Iterator[tuple[Firings, int]]:
    """The same firings, with parts of few put together: making outputs of any has a price."""
    waiting: list[Firings] = []
    read = 0
    for firings, end in walk:
        if waiting and not firings.can_follow(waiting[-1]):
            yield Firings.joined(waiting), read
            waiting = []
        waiting.append(firings)
        read = end
        if sum(len(each.at) for each in waiting) >= FEWEST_FIRINGS:
            yield Firings.joined(waiting), read
            waiting = []
    if waiting:
        yield Firings.joined(waiting), read


class LooseStates(States, Protocol):
    """States of which a rule can be left out."""

    impatient: set[int]

    def stop(self, rule: int) -> None: ...


class LooseGroup(Group):
    """A group that its members can leave one by one."""

    states: LooseStates

    @property
    def leaving(self) -> list[str]:
        """The members that have to go on alone before anything else is read."""
        return [m.name for m in self.members.values() if m.number in self.states.impatient]

    def let_go(self, name: str) -> None:
        """A member goes its own way from now on."""
        self.states.stop(self.members[name].number)
        self.members = {each: member for each, member in self.members.items() if each != name}
