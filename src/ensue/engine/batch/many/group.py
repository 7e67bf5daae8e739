"""Rules that go through a batch together: all that share a key in one pass.

A group numbers the keys of a batch and finds the rows that its ports want once for all of its
members, takes each row through the cells of the rules that want it (`visits`), and makes all of
their outputs at once. Rules of a group have equal traits (`ensue.engine.core.shapes`); rules of one
shape share a table. Where a table keeps growing, the rules of its shape leave the group, in the
middle of a batch if need be, and go on alone. `GroupMember` is one rule of a group to the rest of
the engine: its state is saved and restored as that of any other.

Rules that feed others or are fed are not for groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.intake import AlarmBatch
from ensue.engine.batch.input.keys import Keys
from ensue.engine.batch.input.matching import Segment
from ensue.engine.batch.many.row_lists import RowLists, RowNumbers
from ensue.engine.batch.many.visits import GroupTables, TimedFirings, VisitedCells
from ensue.engine.batch.output.build import OutputMaker
from ensue.engine.batch.output.columns import PartedOutputs, SourceOutputs
from ensue.engine.batch.output.firings import Firings, Readings
from ensue.engine.batch.output.order import Roots
from ensue.engine.batch.output.remembered import RememberedReadings
from ensue.engine.batch.paths import Path
from ensue.engine.batch.single.correlation import readings_in
from ensue.engine.core.cells import RuleCells
from ensue.engine.core.numbering import Instants, Numbers, Rows, distinct
from ensue.engine.core.shapes import (
    GroupTraits,
    begins_with_statements,
    event_ports,
    lengths_of,
    shape_of,
    table_of,
    window_of,
)
from ensue.engine.counts import Counts
from ensue.engine.sizes import sizes
from ensue.events.times import microseconds_of
from ensue.events.types import TypeSystem
from ensue.lang.derived.parts import names_of_bound_events
from ensue.lang.expressions.derived_names import path_to
from ensue.lang.expressions.evaluation import MISSING
from ensue.lang.expressions.names import is_time
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine

FEWEST_FIRINGS = 1 << 14
"""Fewer firings than this wait for those of the next rows before outputs are made."""


@dataclass
class GroupMember:
    """One rule of a group; `number` is its place in it."""

    name: str
    path: Path
    number: int
    group: BatchGroup
    has_start: bool

    @property
    def held(self) -> RuleCells:
        """The states and slots of the member, as views into the arrays of the group."""
        self.make_room()
        return self.group.visited.cells.of(self.number)

    @property
    def keys(self) -> Keys:
        return self.group.keys

    @property
    def maker(self) -> OutputMaker:
        return self.group.maker

    @property
    def remembered(self) -> RememberedReadings:
        return self.group.remembered

    @property
    def latest(self) -> int | None:
        """The time that the clock has reached, as far as it is known here."""
        return self.group.visited.latest

    def make_room(self) -> None:
        """Have a cell for every key that is numbered."""
        self.group.visited.grow(self.group.keys.count)

    def drop_expired(self) -> None:
        """Drop what has left its window, under every key."""
        visited = self.group.visited
        if visited.latest is not None:
            visited.cells.of(self.number).drop_expired(visited.latest)


class BatchGroup:
    """Rules of equal traits, in the order of the library; `numbers` has their places there."""

    def __init__(
        self,
        traits: GroupTraits,
        correlations: Sequence[Correlation],
        numbers: Sequence[int],
        machines: Mapping[int, Machine],
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        """`machines` has the machines that are built already, at least one of each shape."""
        self.numbers = np.array(numbers)
        self.keys = Keys(bool(traits.key))
        self.has_timers = traits.has_timers
        self._key_names = traits.key
        self._correlations = correlations
        self._types = types
        self._counts = counts
        names = [part for each in correlations for part in names_of_bound_events(each)]
        self.remembered = RememberedReadings(names, traits.keeps_events)
        self._row_lists = RowLists(types)
        lists = [
            [self._row_lists.number(port) for port in event_ports(each)] for each in correlations
        ]
        width, none = max(1, *map(len, lists)), self._row_lists.count
        shapes: dict[object, int] = {}
        shape_numbers = [shapes.setdefault(shape_of(each), len(shapes)) for each in correlations]
        self.visited = VisitedCells(
            _tables(correlations, shape_numbers, numbers, machines),
            np.array([each + [none] * (width - len(each)) for each in lists], np.int64),
            none,
        )
        self.maker = OutputMaker(
            [each.name for each in correlations],
            traits.binds_first,
            self.keys,
            types,
            self.remembered,
            {name: place for place, name in enumerate(traits.key)},
        )
        self.members: dict[str, GroupMember] = {
            each.name: GroupMember(
                each.name,
                _path(traits, each),
                number,
                self,
                begins_with_statements(each),
            )
            for number, each in enumerate(correlations)
        }

    @property
    def has_room(self) -> bool:
        """Whether there is room for a cell of each rule and key."""
        return self.visited.has_room

    @property
    def leaving(self) -> list[str]:
        """The members that have to go on alone before anything else is read."""
        return [m.name for m in self.members.values() if m.number in self.visited.impatient]

    def release(self, name: str) -> None:
        """Leave a member out from now on."""
        self.visited.stop(self.members.pop(name).number)

    def next_due(self) -> int | None:
        """When the first timer of any member is due."""
        return self.visited.cells.next_due() if self.has_timers else None

    def read(self, segment: Segment, clock: int | None) -> tuple[PartedOutputs, Roots | None, int]:
        """The outputs of all members, their roots, and how many rows were read.

        Without timers there are no roots: each output says itself which row it comes from.
        """
        batch = segment.batch
        lists = self._row_lists.of(batch)
        keys = self._number_keys(segment, lists)
        first, end = self.remembered.next, 0
        if len(batch):
            self.remembered.add([batch])
        without = np.zeros(len(self.numbers), np.int64)
        made: list[SourceOutputs] = []
        roots: list[Roots] = []
        walk = self.visited.read(lists, keys, batch.times, self.keys.count, first, without, clock)
        for firings, end in walk if self.has_timers else in_larger_parts(walk):
            if not len(firings.at):
                continue
            if isinstance(firings, TimedFirings):
                latest = int(batch.times[end - 1]) if end else int(firings.times[-1])
                part, of = self._make_timed(firings, first, latest)
                roots.append(of)
            else:
                times = batch.times[:end]
                read = Readings(first, times, keys[:end], int(times[-1]))
                part = self.maker.make(firings, read)
            made.append(part)
        for member in self.members.values():
            if without[member.number]:
                self._counts.without_key[member.name] += int(without[member.number])
        return PartedOutputs(made), Roots.joined(roots) if self.has_timers else None, end

    def _number_keys(self, segment: Segment, lists: Sequence[RowNumbers]) -> Numbers:
        """The key of each row that any rule reads."""
        batch = segment.batch
        if not self.keys.keyed:
            return np.zeros(len(batch), np.int32)
        wanted = np.zeros(len(batch), np.bool_)
        for each in lists:
            wanted[each] = True
        rows = np.flatnonzero(wanted)
        keys = np.full(len(batch), -1, np.int32)
        if rows.size:
            columns = [batch.column(path_to(name)) for name in self._key_names]
            keys[rows] = self.keys.number(columns, rows)
        return keys

    def _make_timed(
        self, fired: TimedFirings, first: int, latest: int
    ) -> tuple[SourceOutputs, Roots]:
        """The outputs of events and alarms, and what each comes from."""
        at, heads = _by_reading(fired)
        rows = fired.at[heads]
        read = Readings(
            first,
            fired.times[heads],
            fired.keys[heads].astype(np.int32),
            max(latest, int(fired.times[-1])),
            np.where(rows < 0, 0, first + rows),
        )
        firings = Firings(at, fired.actions, fired.slots, fired.table, fired.rules)
        part = self.maker.make(firings, read)
        of = heads[part.at]
        assert part.rules is not None, "several rules may have put out"
        return part, Roots(
            fired.at[of], self.numbers[part.rules], fired.times[of], fired.last_read[of]
        )

    def reach(self, clock: int) -> None:
        """The clock has come to a time, whether or not a rule has read anything since."""
        latest = self.visited.latest
        self.visited.latest = clock if latest is None else max(latest, clock)

    def clear_up(self) -> None:
        """Drop events that no key holds any more, if there are many."""
        enough = max(sizes().rows_of_a_table_before_clearing, self.visited.cells.size // 2)
        if self.remembered.recent_rows > enough or self.remembered.is_heavy:
            held = []
            for member in self.members.values():
                member.drop_expired()
                held.append(readings_in(member.held))
            self.remembered.forget_all_but(distinct(np.concatenate(held)))

    # --- firings of timers that are bound ---------------------------------------------------------

    def moments_of(self, readings: Rows) -> Instants:
        """When firings of timers came, which a snapshot has as readings."""
        asked = [name for name in self.remembered.names if is_time(name)]
        if not asked:
            return np.zeros(len(readings), np.int64)
        column = self.remembered.column(asked[0], readings)
        if column.kind == "timestamp":
            return np.asarray(column.values, np.int64)
        # A rule that has never asked for the time was saved without it.
        found = [0 if each is MISSING else microseconds_of(each) for each in column.to_list()]
        return np.array(found, np.int64)

    def readings_of(self, moments: Instants) -> Rows:
        """Firings of timers as readings, as a snapshot has them."""
        first = self.remembered.next
        self.remembered.add([AlarmBatch(moments, self._types)])
        return np.arange(first, first + len(moments))


def _path(traits: GroupTraits, correlation: Correlation) -> Path:
    if traits.has_timers:
        return Path("timed")
    return Path("table" if window_of(correlation) is None else "window")


def _tables(
    correlations: Sequence[Correlation],
    shapes: Sequence[int],
    numbers: Sequence[int],
    machines: Mapping[int, Machine],
) -> GroupTables:
    """The tables of some rules, one for each shape; `numbers` name their machines."""
    firsts = [shapes.index(shape) for shape in range(1 + max(shapes))]
    alike = [correlations[first] for first in firsts]
    tables = [table_of(correlations[first], machines[numbers[first]]) for first in firsts]
    return GroupTables(
        tables,
        shapes,
        [window_of(each) for each in correlations],
        [
            lengths_of(each, alike[shape], tables[shape])
            for each, shape in zip(correlations, shapes, strict=True)
        ],
        [len(event_ports(each)) for each in alike],
        alike,
    )


def in_larger_parts(walk: Iterable[tuple[Firings, int]]) -> Iterator[tuple[Firings, int]]:
    """The firings with small parts joined, since making outputs has a price for each part."""
    waiting: list[Firings] = []
    read = 0
    for firings, end in walk:
        waiting.append(firings)
        read = end
        if sum(len(each.at) for each in waiting) >= FEWEST_FIRINGS:
            yield _joined(waiting), read
            waiting = []
    if waiting:
        yield _joined(waiting), read


def _joined(parts: Sequence[Firings]) -> Firings:
    if len(parts) == 1:
        return parts[0]
    return Firings(
        np.concatenate([each.at for each in parts]),
        np.concatenate([each.actions for each in parts]),
        np.concatenate([each.slots for each in parts]),
        parts[0].table,
        np.concatenate([each.rules for each in parts if each.rules is not None]),
    )


def _by_reading(fired: TimedFirings) -> tuple[Rows, Rows]:
    """Which firings come from one reading, by numbers, and the first firing of each reading.

    An event is one reading for all rules. The alarms of a rule and a key at one moment are one.
    """
    rows, rules, last_read = fired.at, fired.rules, fired.last_read
    assert rules is not None
    same: npt.NDArray[np.bool_] = rows[1:] == rows[:-1]
    alarms = rows[1:] < 0
    same &= ~alarms | (
        (fired.times[1:] == fired.times[:-1])
        & (rules[1:] == rules[:-1])
        & (last_read[1:] == last_read[:-1])
    )
    begins = np.r_[True, ~same]
    return np.cumsum(begins) - 1, np.flatnonzero(begins)
