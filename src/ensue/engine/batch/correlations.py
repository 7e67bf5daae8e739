"""A correlation over batches: in compiled loops where it can be, else event by event.

In come the rows that it may read, from one or more batches, each with its place in the order of the
whole stream; out goes what it puts out. A correlation is *in columns* if its machine has a table,
or a window and labels that never change, and if it has no timers; all others run on the instances
of the step engine, which is slower and always right. `path_of` says which, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.batches import Batch, EventBatch
from ensue.engine.batch.column import Rows
from ensue.engine.batch.keys import Keys
from ensue.engine.batch.linear_walk import LinearWalk, fits_linear_walk
from ensue.engine.batch.made import Made
from ensue.engine.batch.making import OutputMaker, Readings
from ensue.engine.batch.matching import Matcher, why_not_matched
from ensue.engine.batch.order import past_positions
from ensue.engine.batch.ranks import distinct
from ensue.engine.batch.remembered import Remembered, read_event
from ensue.engine.batch.timed_walk import TimedWalk
from ensue.engine.batch.walks import Firings, Patience, TableWalk
from ensue.engine.batch.window_walk import WindowWalk
from ensue.engine.core.bit_table import BitTable
from ensue.engine.core.effects import EclActions, FilterActions
from ensue.engine.core.numbering import Numbers
from ensue.engine.core.table import FilledTable
from ensue.engine.core.timer_table import FilledTimed, Timers, why_not_in_columns
from ensue.engine.core.window_table import FilledWindow, OrderedTable
from ensue.engine.counts import Counts
from ensue.events.types import TypeSystem
from ensue.lang.expressions.names import Parts, names_in
from ensue.lang.syntax import (
    Correlation,
    FilterCorrelation,
    PushNew,
    PushPort,
    Statement,
)
from ensue.machine.model import Machine
from ensue.machine.plan import Plan, plan

MOST_PLACES = 4096
"""Past so many places a key is too large for an array of them."""
TABLE_STATES = 20_000
"""Past so many states of a table the machine is stepped directly, if its labels never change."""
SMALLEST_CLEARING = 1_000_000
"""Readings of earlier batches are sorted out when there are at least so many."""

Positions = npt.NDArray[np.int64]
Walk = TableWalk | WindowWalk | LinearWalk
PastReading = tuple[bytes, int, int]
"""An event that was read, and the kind and number of the root that it came from."""


@dataclass(frozen=True, slots=True)
class Path:
    """How a correlation runs, and why, where that is not for the asking.

    On its `table`; on one with registers for the times of a `window`; on one that is `timed`, by
    timers; `stepped` along its transitions past the budget of a table; or by `events`.
    """

    name: str
    reason: str = ""


@dataclass(frozen=True)
class Segment:
    """Rows that a correlation may read, and where each stands in the order of the stream."""

    batch: Batch
    positions: Positions


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a correlation reads of some segments: row `rows[n]` of `batches[which[n]]`."""

    batches: Sequence[Batch]
    rows: Rows
    bits: Any
    keys: Numbers
    times: npt.NDArray[np.int64]
    which: Rows | None
    _positions: Positions

    def positions(self, at: Rows | slice = slice(None)) -> Positions:
        """Where these readings stand in the stream."""
        # What comes from one segment only needs not be put in order.
        return self._positions[self.rows[at] if self.which is None else at]


def place_count(machine: Machine) -> int:
    return max((p for branch in machine.branches for p, _, _ in branch.places), default=-1) + 1


def path_of(correlation: Correlation, brought: Plan | None = None) -> tuple[Path, Machine | None]:
    """How a correlation runs in batches, and its machine if that is in columns.

    A plan that was brought along is taken as it is; else one is made.
    """
    planned = brought if brought is not None else plan(correlation)
    if planned.form == "memory":
        return Path("events", planned.why), None
    machine = planned.needed_machine
    timers = Timers(correlation, machine)
    if len(timers) and (why := why_not_in_columns(correlation, machine)):
        return Path("events", why), None
    if why := why_not_matched(correlation, machine):
        return Path("events", why), None
    if place_count(machine) > MOST_PLACES:
        return Path("events", f"its ports have more than {MOST_PLACES} places"), None
    if len(timers):
        return Path("timed"), machine
    return Path("table" if machine.window is None else "window"), machine


class ColumnCorrelation:
    """A correlation in compiled loops."""

    def __init__(
        self,
        correlation: Correlation,
        path: Path,
        machine: Machine,
        types: TypeSystem,
        counts: Counts,
    ) -> None:
        self.name = correlation.name
        self.path = path
        self.number = 0
        self.keys = Keys(bool(correlation.clauses.by))
        self.table_states = TABLE_STATES
        self._counts = counts
        self._types = types
        self._depth = 1
        self._latest: int | None = None
        self._matcher = Matcher(correlation, machine, types)
        bind_first = False
        self.has_start = False
        self.walk: Walk
        if isinstance(correlation, FilterCorrelation):
            bind_first = correlation.clauses.bind == "first"
            self.has_start = bool(correlation.initially)
            self._actions: FilterActions | EclActions = FilterActions(correlation, machine)
        else:
            self._actions = EclActions(correlation, machine)
        self.machine = machine
        self._timers = Timers(correlation, machine)
        match self._empty_table():
            case FilledTimed() as timed:
                self.walk = TimedWalk(timed)
            case FilledWindow() as ordered:
                self.walk = WindowWalk(ordered)
            case filled:
                self.walk = TableWalk(filled)
        can_be_left = not len(self._timers) and fits_linear_walk(machine)
        self.patience = Patience() if can_be_left else None
        self.remembered = Remembered(*asked_of(correlation))
        self.maker = OutputMaker([self.name], bind_first, self.keys, types, self.remembered)

    def _empty_table(self) -> FilledTable:
        """A table of which nothing is filled, for what the correlation has: timers, a window."""
        machine, bit_of, places = self.machine, self._matcher.bit_of, place_count(self.machine)
        table = OrderedTable(machine) if machine.window else BitTable(machine, TABLE_STATES)
        if len(self._timers):
            return FilledTimed(table, self._actions, bit_of, places, self._timers)
        kind = FilledTable if machine.window is None else FilledWindow
        return kind(table, self._actions, bit_of, places)

    def read(self, segments: Sequence[Segment]) -> tuple[Made, Positions]:
        """What it puts out, and the place in the stream of the reading behind each output."""
        found = self._gathered(segments, np.empty((0, 1), np.int64))
        if not found.rows.size:
            return Made(found.rows, []), found.positions()
        first = self.remembered.next
        self.remembered.add(found.batches, found.rows, found.which)
        firings = self._walk(found.bits, found.keys, found.times, first)
        made = self.maker.make(firings, Readings(first, found.times, found.keys))
        return made, found.positions(made.at)

    def _gathered(self, segments: Sequence[Segment], nowhere: Positions) -> Gathered:
        """All that is read of some segments, in the order of the stream."""
        found = [(each, self._matcher.match(each.batch, self.keys)) for each in segments]
        missing = sum(matches.without_key for _, matches in found)
        if missing:
            self._counts.without_key[self.name] += missing
        found = [(segment, matches) for segment, matches in found if matches.rows.size]
        if not found:
            none = np.empty(0, np.int64)
            nobody = np.empty(0, np.int32)
            return Gathered([], none, self._matcher.no_bits, nobody, none, None, nowhere)
        rows = _concatenated([matches.rows for _, matches in found])
        bits = _concatenated([matches.bits for _, matches in found])
        keys = _concatenated([matches.keys for _, matches in found])
        times = _concatenated([s.batch.times[m.rows] for s, m in found])
        which = None
        positions = found[0][0].positions
        if len(found) > 1:
            positions = np.concatenate([s.positions[m.rows] for s, m in found])
            which = np.repeat(np.arange(len(found)), [m.rows.size for _, m in found])
            # Stable, for a row that is read under two keys has one position.
            order = np.lexsort(positions.T[::-1])
            rows, bits, keys, times, which = (
                each[order] for each in (rows, bits, keys, times, which)
            )
            positions = positions[order]
        batches = [segment.batch for segment, _ in found]
        self._latest = int(times[-1])
        return Gathered(batches, rows, bits, keys, times, which, positions)

    def _walk(self, bits: Any, keys: Numbers, times: Any, first: int) -> Firings:
        """Let the walk read; where its table grows too large, the rest is stepped."""
        walk, count = self.walk, self.keys.count
        if isinstance(walk, LinearWalk):
            return walk.read(bits, keys, times, count, first)
        firings = walk.read(bits, keys, times, count, first, self.patience)
        at = firings.read
        if self.patience is not None:
            self.patience.events += at
        if at < len(keys):
            self.leave_table("its table kept growing")
            later = self.walk.read(bits[at:], keys[at:], times[at:], count, first + at)
            return firings.then(later, at)
        self._hold_to_budget()
        return firings

    def _hold_to_budget(self) -> None:
        """Leave a table that has grown too large; or empty it, if it cannot be left."""
        walk = self.walk
        if isinstance(walk, LinearWalk) or len(walk.filled.known) <= self.table_states:
            return
        if self.patience is not None:
            self.leave_table(f"its table has more than {self.table_states:,} states")
            return
        walk.renew(self._empty_table())
        # What keys are in by now has to have room, and something besides.
        self.table_states = max(self.table_states, 2 * len(walk.filled.known))

    def leave_table(self, why: str) -> None:
        """Step the machine from now on, if it can be."""
        walk = self.walk
        if isinstance(walk, LinearWalk) or self.patience is None:
            return
        places = walk.places.shape[1] - 1
        linear = LinearWalk(self.machine, self._actions, self._matcher.bit_of, places)
        linear.grow(len(walk.states))
        every = np.arange(len(walk.states))
        linear.take_starts(every, walk.starts_of(every), walk.started_of(every))
        linear.places[:] = walk.places
        self.walk = linear
        self.path = Path("stepped", why)

    def take_starts(self, at: Numbers, starts: Any, started: Any) -> None:
        """Go on from the starts of a snapshot: on a table if there are few orders of them."""
        most = self.table_states if self.patience is not None else len(starts)
        if isinstance(self.walk, WindowWalk) and self.walk.take_starts(at, starts, started, most):
            return
        self.leave_table("it had left its table before")
        assert isinstance(self.walk, LinearWalk)
        self.walk.take_starts(at, starts, started)

    def read_again(self, clock: int | None, past: Sequence[PastReading]) -> None:
        """Go on from all that was read, as older snapshots have it of what ran by events."""
        batch = EventBatch([read_event(event) for event, _, _ in past], self._types)
        roots = [(kind, number) for _, kind, number in past]
        counted = self._counts.without_key[self.name]
        if past or clock is not None:
            positions = past_positions(batch.times, roots, self._depth)
            self._read_past([Segment(batch, positions)] if past else [], clock)
        self._counts.without_key[self.name] = counted

    def _read_past(self, segments: Sequence[Segment], clock: int | None) -> None:  # noqa: ARG002
        self.read(segments)

    def make_room(self) -> None:
        """Have a state for every key that is numbered."""
        self.walk.grow(self.keys.count)

    def drop_expired(self) -> None:
        """Let every key drop what has left its window by the last moment that was read."""
        if isinstance(self.walk, WindowWalk) and self._latest is not None:
            self.walk.drop_expired(self._latest)

    def clear_up(self) -> None:
        """Let go of events that no key holds any more, if there are enough of them."""
        if self.remembered.recent_rows > max(SMALLEST_CLEARING, self.walk.places.size // 2):
            self.let_go()

    def let_go(self) -> None:
        self.drop_expired()
        self.remembered.forget_all_but(held_by([self.walk]))


def held_by(walks: Iterable[Walk]) -> Rows:
    """The readings that some key holds in a place, sorted, each once."""
    every = [walk.places[walk.bound() & (walk.places > 0)] for walk in walks]
    return distinct(np.concatenate(every))


def asked_of(correlation: Correlation) -> tuple[list[Parts], bool]:
    """The names that outputs ask of bound events, and whether they send on whole events."""
    if not isinstance(correlation, FilterCorrelation):
        return [], False
    statements: list[Statement] = [*correlation.initially]
    for case in correlation.cases:
        statements += case.statements
    names = [
        parts[1:]
        for statement in statements
        if isinstance(statement, PushNew)
        for assignment in statement.assignments
        for parts in names_in(assignment.value)
        if len(parts) > 1
    ]
    return names, any(isinstance(statement, PushPort) for statement in statements)


def _concatenated(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


__all__ = ["ColumnCorrelation", "Path", "Positions", "Rows", "Segment", "path_of"]
