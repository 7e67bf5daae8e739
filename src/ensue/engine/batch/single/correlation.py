"""A correlation without timers over batches, in compiled loops.

In come the rows that it may read, from one or more batches, each with its place in the order of the
whole stream; out goes what it puts out. A correlation is *in columns* if its machine has a table:
its cells are those of `ensue.engine.core`, driven row by row. Rules with timers are in columns only
in groups (`many.group`). All other rules run on instances, event by event (`by_event`), which is
slower and always right. `batch.paths` says which, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensue.engine.batch.input.keys import Keys
from ensue.engine.batch.input.matching import Matcher, Segment, SymbolNumbers, gathered
from ensue.engine.batch.output.build import OutputMaker
from ensue.engine.batch.output.columns import SourceOutputs
from ensue.engine.batch.output.firings import Firings, Readings
from ensue.engine.batch.output.order import Positions
from ensue.engine.batch.output.remembered import RememberedReadings
from ensue.engine.batch.paths import Path
from ensue.engine.batch.single.linear import LinearWalk, fits_linear_walk
from ensue.engine.core.cell_drivers import walk_table, walk_window
from ensue.engine.core.cell_step import WalkedEvents
from ensue.engine.core.cells import Cells, FiringRoom, RuleCells
from ensue.engine.core.numbering import Numbers, Rows, distinct
from ensue.engine.core.packed import PackedTables
from ensue.engine.core.rule_table import Patience, RuleTable
from ensue.engine.core.shapes import begins_with_statements
from ensue.engine.counts import Counts
from ensue.engine.sizes import sizes
from ensue.events.types import TypeSystem
from ensue.lang.derived.keys import key_places
from ensue.lang.derived.parts import names_of_bound_events, sends_events
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine


class ColumnCorrelation:
    """A correlation without timers, in compiled loops."""

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
        self.table_states = sizes().table_states
        self.machine = machine
        self._correlation = correlation
        self._counts = counts
        self.latest: int | None = None
        self._matcher = Matcher(correlation, machine, types)
        self.has_start = begins_with_statements(correlation)
        table = self._empty_table()
        self._symbols = SymbolNumbers(table.symbols)
        self._tables = PackedTables([table], [0], [machine.window], [()])
        self._cells = Cells(self._tables)
        self._linear: LinearWalk | None = None
        self._walk = walk_table if machine.window is None else walk_window
        self.patience = Patience() if fits_linear_walk(machine) else None
        self.remembered = RememberedReadings(
            names_of_bound_events(correlation), sends_events(correlation)
        )
        bind_first = correlation.clauses.bind == "first"
        self.maker = OutputMaker(
            [self.name],
            bind_first,
            self.keys,
            types,
            self.remembered,
            key_places(correlation.clauses.by),
        )

    def _empty_table(self) -> RuleTable:
        return RuleTable(self._correlation, self.machine, self._matcher.bit_of)

    @property
    def held(self) -> RuleCells | LinearWalk:
        """The states and slots of all keys."""
        return self._cells.of(0) if self._linear is None else self._linear

    def read(self, segments: Sequence[Segment]) -> tuple[SourceOutputs, Positions]:
        """What it puts out, and the place in the stream of the reading behind each output."""
        found, missing = gathered(self._matcher, self.keys, segments)
        if missing:
            self._counts.without_key[self.name] += missing
        if not found.rows.size:
            return SourceOutputs(found.rows, []), found.positions()
        self.latest = int(found.times[-1])
        first = self.remembered.next
        self.remembered.add(found.batches, found.rows, found.which)
        firings = self._read(found.bits, found.keys, found.times, first)
        made = self.maker.make(firings, Readings(first, found.times, found.keys, self.latest))
        return made, found.positions(made.at)

    def _read(self, bits: Any, keys: Numbers, times: Any, first: int) -> Firings:
        """Take events through the cells; where their table grows too large, step the rest."""
        if self._linear is not None:
            return self._linear.read(bits, keys, times, self.keys.count, first)
        firings = self.walk_events(bits, keys, times, self.keys.count, first)
        at = firings.read
        if self.patience is not None:
            self.patience.events += at
        if at < len(keys):
            linear = self.leave_table("its table kept growing")
            later = linear.read(bits[at:], keys[at:], times[at:], self.keys.count, first + at)
            return firings.then(later, at)
        self._hold_to_budget()
        return firings

    def walk_events(
        self, bits: Any, keys: Numbers, times: Any, key_count: int, first: int
    ) -> Firings:
        """Take events that are given by their bits and keys through the cells.

        With a patience it may stop at an event whose move would have to be worked out.
        """
        tables, cells, table = self._tables, self._cells, self._tables.tables[0]
        cells.grow(key_count)
        known = len(table.symbols.atoms)
        symbols = self._symbols.of(bits)
        if len(table.symbols.atoms) > known:
            tables.fit_letters()
        room = FiringRoom(max(1024, len(keys) // 8), table.slots)
        events = WalkedEvents(symbols, times, keys, first)
        at = fired = 0
        while True:
            at, fired = self._walk(events, at, tables.arrays, cells.arrays, room.arrays, fired)
            if at == len(keys) or (self.patience and self.patience.is_over(table, at)):
                rows, _, actions, slots, _ = room.written(fired)
                return Firings(rows, actions, slots, table.actions, read=at)
            if fired == len(room.arrays.rows):
                room.grow()
            else:
                tables.fill(0, int(cells.of(0).states[keys[at]]), int(symbols[at]))
                cells.fit()

    def _hold_to_budget(self) -> None:
        """Leave a table that has grown too large; or empty it, if it cannot be left."""
        table = self._tables.tables[0]
        if len(table.known) <= self.table_states:
            return
        if self.patience is not None:
            self.leave_table(f"its table has more than {self.table_states:,} states")
            return
        empty = self._empty_table()
        states = self._cells.of(0).states
        states[:] = empty.renumber(states, table)
        self._tables.renew(0, empty)
        self._symbols = SymbolNumbers(empty.symbols)
        self._cells.fit()
        # What keys are in by now has to have room, and something besides.
        self.table_states = max(self.table_states, 2 * len(empty.known))

    def leave_table(self, why: str) -> LinearWalk:
        """Step the machine from now on; its labels never change."""
        cells = self._cells.of(0)
        count = len(cells.states)
        table = cells.table
        linear = LinearWalk(self.machine, table.effects, self._matcher.bit_of, table.slots)
        linear.grow(count)
        every = np.arange(count)
        linear.take_starts(every, cells.starts_of(every), cells.started_of(every))
        linear.slots[:count] = cells.slots
        self._linear = linear
        self.path = Path("stepped", why)
        return linear

    def take_starts(self, at: Numbers, starts: Any, started: Any) -> None:
        """Go on from the starts of a snapshot: on a table if there are few orders of them."""
        most = self.table_states if self.patience is not None else len(starts)
        cells = self._cells.of(0)
        if cells.table.has_window and cells.take_starts(at, starts, started, most):
            return
        self.leave_table("it had left its table before").take_starts(at, starts, started)

    def make_room(self) -> None:
        """Make cells for all keys that have numbers."""
        if self._linear is None:
            self._cells.grow(self.keys.count)
        else:
            self._linear.grow(self.keys.count)

    def reach(self, clock: int) -> None:
        """The clock has come to a time, whether or not this rule has read anything since."""
        self.latest = clock if self.latest is None else max(self.latest, clock)

    def drop_expired(self) -> None:
        """Let every key drop what has left its window by the last moment that was read."""
        if self.latest is not None:
            self.held.drop_expired(self.latest)

    def clear_up(self) -> None:
        """Drop events that no key holds any more, if there are many."""
        held = self._cells.size if self._linear is None else self._linear.slots.size
        enough = max(sizes().rows_of_a_table_before_clearing, held // 2)
        if self.remembered.recent_rows > enough or self.remembered.is_heavy:
            self.forget_unheld()

    def forget_unheld(self) -> None:
        """Keep of earlier batches only the events that some key holds."""
        self.drop_expired()
        self.remembered.forget_all_but(distinct(readings_in(self.held)))


def readings_in(held: RuleCells | LinearWalk) -> Rows:
    """The readings that some key holds in a slot, in any order."""
    counts = held.bound() & (held.slots > 0)
    if isinstance(held, RuleCells):
        counts[:, held.table.timer_slots] = False
    return np.asarray(held.slots[counts])
