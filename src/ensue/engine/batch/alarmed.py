"""Correlations with timers side by side: all that share a key in one pass over a batch.

An event goes only to those that want it, and an alarm only to its own (`alarms`); rows, keys and
outputs are worked out for all of them at once. They may be of different shapes; those that differ
in nothing but names, predicates, the length of the window and how long their timers run share one
table. In come rows and the time up to which the clock has come; out go outputs with their places in
the order of the stream. Labels that are aborted and `bind first` are not for this, and neither are
more than a few timers: such a correlation runs alone (`timed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.alarm_tables import MOST_TIMEOUTS, MOST_TIMER_PORTS, AlarmTables
from ensue.engine.batch.alarms import AlarmedStates, AlarmFirings
from ensue.engine.batch.column import Rows
from ensue.engine.batch.correlations import Path, Segment
from ensue.engine.batch.from_step import is_time
from ensue.engine.batch.groups import (
    Company,
    LooseGroup,
    bound_by_last,
    common_key_of_events,
    remembered_by,
    table_of_ports,
)
from ensue.engine.batch.made import Made, MadeInTurn
from ensue.engine.batch.making import Readings
from ensue.engine.batch.placing import Roots
from ensue.engine.batch.timed import AlarmBatch
from ensue.engine.batch.visits import Instants
from ensue.engine.batch.walks import Firings, TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.batch.windowed import window_of
from ensue.engine.core.table import FilledTable
from ensue.engine.core.timer_table import FilledTimed, Timers
from ensue.engine.counts import Counts
from ensue.engine.renaming import numbered_ports, with_ports
from ensue.events.times import microseconds_of
from ensue.events.types import TypeSystem
from ensue.lang.expressions.evaluation import MISSING
from ensue.lang.syntax import (
    Correlation,
    Duration,
    EclCorrelation,
    EventPort,
    Timeout,
    TimerPort,
)
from ensue.machine.model import Machine, PredicateAtom

AlarmedShape = tuple[bool, Correlation]


def alarmed_company(
    correlation: Correlation, path: Path, machine: Machine | None
) -> Company | None:
    """What those with timers that can run side by side have in common; None if one cannot."""
    if path.name != "timed" or machine is None:
        return None
    timers = Timers(correlation, machine)
    if len(timers.ports) > MOST_TIMER_PORTS or len(timers.timeouts) > MOST_TIMEOUTS:
        return None
    if any(isinstance(atom, PredicateAtom) for atom in machine.atoms):
        return None
    return bound_by_last(correlation, machine)


def durations_in(correlation: Correlation) -> list[int]:
    """How long its timers run, each length once, the shortest first."""
    found = {port.period.microseconds for port in correlation.ports if isinstance(port, TimerPort)}
    if isinstance(correlation, EclCorrelation):
        found.update(_timeouts_in(correlation.body))
    return sorted(found)


def _timeouts_in(said: Any) -> Iterator[int]:
    match said:
        case Timeout(after):
            yield after.microseconds
        case tuple():
            for each in said:
                yield from _timeouts_in(each)
        case _ if is_dataclass(said) and not isinstance(said, type):
            for each in fields(said):
                if each.compare:
                    yield from _timeouts_in(getattr(said, each.name))


def shape_of_alarmed(correlation: Correlation) -> AlarmedShape | None:
    """What correlations of one table have in common; None for one without timers.

    Of how long its timers run only their order is kept, and which of them are equal.
    """
    durations = durations_in(correlation)
    if not durations or common_key_of_events(correlation) is None:
        return None
    ranks = {length: Duration(1 + rank) for rank, length in enumerate(durations)}
    numbered = numbered_ports(correlation)
    bare = tuple(
        EventPort("", numbered[port.name])
        if isinstance(port, EventPort)
        else TimerPort(port.kind, ranks[port.period.microseconds], numbered[port.name])
        for port in correlation.ports
    )
    said: Any = replace(with_ports(correlation, numbered), name="", ports=bare)
    if isinstance(said, EclCorrelation):
        said = replace(said, body=_with_ranks(said.body, ranks))
    clauses = said.clauses
    return clauses.within is not None, replace(said, clauses=replace(clauses, within=None))


def _with_ranks(said: Any, ranks: Mapping[int, Duration]) -> Any:
    match said:
        case Timeout(after):
            return Timeout(ranks[after.microseconds])
        case tuple():
            return tuple(_with_ranks(each, ranks) for each in said)
        case _ if is_dataclass(said) and not isinstance(said, type):
            held = {each.name: getattr(said, each.name) for each in fields(said) if each.compare}
            changed = {
                name: _with_ranks(value, ranks)
                for name, value in held.items()
                if isinstance(value, tuple) or is_dataclass(value)
            }
            return replace(said, **changed)
        case _:
            return said


class AlarmedGroup(LooseGroup):
    """Correlations with timers and one key; `shape_of` says which of the machines each has."""

    states: AlarmedStates

    def __init__(
        self,
        correlations: Sequence[Correlation],
        numbers: Sequence[int],
        shape_of: Sequence[int],
        machines: Sequence[Machine],
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        remembered, starts = remembered_by(correlations)
        super().__init__(
            correlations, numbers, Path("timed"), types, counts, remembered, starts, False
        )
        self._types = types
        firsts = [correlations[shape_of.index(shape)] for shape in range(len(machines))]
        filled = [table_of_ports(*each) for each in zip(firsts, machines, strict=True)]
        lengths = [
            lengths_of(each, firsts[shape], filled[shape])
            for each, shape in zip(correlations, shape_of, strict=True)
        ]
        windows = [window_of(each) for each in correlations]
        tables = AlarmTables(firsts, filled, shape_of, windows, lengths)
        bound_of = [
            _bound_of(each, lists)
            for each, lists in zip(correlations, self._lists.tolist(), strict=True)
        ]
        width = max(len(each) for each in bound_of)
        self.states = AlarmedStates(
            tables,
            self._lists,
            self._row_lists.count,
            np.array([each + [0] * (width - len(each)) for each in bound_of], np.int64),
        )
        self.states.moments, self.states.readings = self._moments, self._readings
        self._asks_when = [name for name in self.remembered.names if is_time(name)]

    @property
    def is_too_large(self) -> bool:
        return not self.states.has_room

    def next_due(self) -> int | None:
        return self.states.next_due()

    def read_until(self, segment: Segment, clock: int | None) -> tuple[MadeInTurn, Roots, int]:
        """What all of them put out, where each output comes from, and how many rows were read."""
        batch = segment.batch
        lists = self._row_lists.of(batch)
        keys = self._number_keys(segment, lists)
        first, end = self.remembered.next, 0
        if len(batch):
            self.remembered.add_all(batch)
        without = np.zeros(len(self.numbers), np.int64)
        made: list[Made] = []
        roots: list[Roots] = []
        for fired, end in self.states.read_until(
            lists, keys, batch.times, self.keys.count, first, without, clock
        ):
            if len(fired.rows):
                at, heads = _readings_of(fired)
                latest = int(batch.times[end - 1]) if end else int(fired.times[-1])
                rows = fired.rows[heads]
                read = Readings(
                    first,
                    fired.times[heads],
                    fired.keys[heads].astype(np.int32),
                    max(latest, int(fired.times[-1])),
                    np.where(rows < 0, 0, first + rows),
                )
                firings = Firings(at, fired.actions, fired.ports, fired.table, fired.rules)
                part = self.maker.make(firings, read)
                made.append(part)
                of = heads[part.at]
                assert part.rules is not None, "several have put out"
                numbers = self.numbers[part.rules]
                roots.append(Roots(fired.rows[of], numbers, fired.times[of], fired.starts[of]))
        self._count(without)
        return MadeInTurn(made), Roots.joined(roots), end

    def put_back(self, number: int, walk: TableWalk | WindowWalk) -> None:
        self.states.put(number, walk)

    def _moments(self, readings: Rows) -> Instants:
        """When timer ports have fired: of readings from a snapshot."""
        if not self._asks_when:
            return np.zeros(len(readings), np.int64)
        column = self.remembered.column(self._asks_when[0], readings)
        if column.kind == "timestamp":
            return np.asarray(column.values, np.int64)
        # A rule that has never asked for the time was saved without it.
        found = [0 if each is MISSING else microseconds_of(each) for each in column.to_list()]
        return np.array(found, np.int64)

    def _readings(self, moments: Instants) -> Rows:
        """Firings of timer ports as readings, as a snapshot has them."""
        first = self.remembered.next
        self.remembered.add_all(AlarmBatch(moments, self._types))
        return np.arange(first, first + len(moments))


def lengths_of(correlation: Correlation, alike: Correlation, table: FilledTable) -> list[int]:
    """How long the timers of a correlation run, in the order that they have in its table."""
    assert isinstance(table, FilledTimed)
    own = dict(zip(durations_in(alike), durations_in(correlation), strict=True))
    return [own[each] for each in table.timers.after.tolist()]


def _bound_of(correlation: Correlation, lists: list[int]) -> list[int]:
    """For each port its list; for the timers -1, -2, and so on."""
    events, timers = iter(lists), 0
    found = []
    for port in correlation.ports:
        if isinstance(port, EventPort):
            found.append(next(events))
        else:
            timers += 1
            found.append(-timers)
    return found


def _readings_of(fired: AlarmFirings) -> tuple[Rows, Rows]:
    """Which firings come from one reading, by numbers, and the first firing of each reading.

    An event is one for all rules. The alarms of a rule and a key at one moment are one.
    """
    rows, starts = fired.rows, fired.starts
    same: npt.NDArray[np.bool_] = rows[1:] == rows[:-1]
    alarms = rows[1:] < 0
    same &= ~alarms | (
        (fired.times[1:] == fired.times[:-1])
        & (fired.rules[1:] == fired.rules[:-1])
        & (starts[1:] == starts[:-1])
    )
    begins = np.r_[True, ~same]
    return np.cumsum(begins) - 1, np.flatnonzero(begins)
