"""A correlation without timers over batches, in compiled loops.

In come the rows that it may read, from one or more batches, each with its place in the order of the
whole stream; out goes what it puts out. A correlation is *in columns* if its machine has a table:
its cells are those of `ensue.engine.core`, driven row by row. Rules with timers are in columns only
in groups (`many.group`). All other rules run on instances, event by event (`by_event`), which is
slower and always right. `batch.paths` says which, and why. A rule whose table keeps growing leaves
it in the middle of a batch, and goes on event by event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensue.engine.batch.input.keys import Keys
from ensue.engine.batch.input.matching import (
    Gathered,
    Matcher,
    Segment,
    SymbolNumbers,
    gathered,
)
from ensue.engine.batch.output.build import OutputMaker
from ensue.engine.batch.output.columns import SourceOutputs
from ensue.engine.batch.output.firings import Firings, Readings
from ensue.engine.batch.output.order import Positions
from ensue.engine.batch.output.remembered import RememberedReadings
from ensue.engine.batch.paths import Path
from ensue.engine.core.cell_drivers import walk
from ensue.engine.core.cell_step import WalkedEvents
from ensue.engine.core.cells import Cells, FiringRoom, RuleCells
from ensue.engine.core.numbering import Rows, distinct
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
        table = RuleTable(correlation, machine, self._matcher.bit_of)
        self._symbols = SymbolNumbers(table.symbols)
        self._tables = PackedTables([table], [0], [machine.window], [()])
        self._cells = Cells(self._tables)
        self.patience = Patience()
        self.stopped: Positions | None = None
        """Where the first reading stands that is left, once its table has grown too large."""
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

    @property
    def held(self) -> RuleCells:
        """The states and slots of all keys."""
        return self._cells.of(0)

    def read(self, segments: Sequence[Segment]) -> tuple[SourceOutputs, Positions]:
        """What it puts out, and the place in the stream of the reading behind each output."""
        found, missing = gathered(self._matcher, self.keys, segments)
        if missing:
            self._counts.without_key[self.name] += missing
        if not found.rows.size:
            return SourceOutputs(found.rows, []), found.positions()
        first = self.remembered.next
        self.remembered.add(found.batches, found.rows, found.which)
        firings = self.walk_events(found, first, self.keys.count)
        read = firings.read
        self.patience.events += read
        if read < len(found.keys):
            self.stopped = found.positions(np.array([read]))[0]
        if not read:
            return SourceOutputs(found.rows[:0], []), found.positions(found.rows[:0])
        self.latest = int(found.times[read - 1])
        made = self.maker.make(firings, Readings(first, found.times, found.keys, self.latest))
        return made, found.positions(made.at)

    def walk_events(self, found: Gathered, first: int, key_count: int) -> Firings:
        """Take readings through the cells, up to one whose move the table is too large for."""
        tables, cells, table, keys = self._tables, self._cells, self._tables.tables[0], found.keys
        cells.grow(key_count)
        known = len(table.symbols.atoms)
        symbols = self._symbols.of(found.bits)
        if len(table.symbols.atoms) > known:
            tables.fit_letters()
        room = FiringRoom(max(1024, len(keys) // 8), table.slots)
        events = WalkedEvents(symbols, found.times, keys, first)
        at = fired = 0
        while True:
            at, fired = walk(events, at, tables.arrays, cells.arrays, room.arrays, fired)
            if at == len(keys) or (self._is_outgrown(at) and found.begins_row(at)):
                rows, _, actions, slots, _ = room.written(fired)
                return Firings(rows, actions, slots, table.actions, read=at)
            if fired == len(room.arrays.rows):
                room.grow()
            else:
                tables.fill(0, int(cells.of(0).states[keys[at]]), int(symbols[at]))
                cells.fit()

    def _is_outgrown(self, more: int) -> bool:
        table = self._tables.tables[0]
        return self.patience.is_over(table, more) or len(table.known) > self.table_states

    @property
    def why_outgrown(self) -> str:
        if len(self._tables.tables[0].known) > self.table_states:
            return f"its table has more than {self.table_states:,} states"
        return "its table kept growing"

    def make_room(self) -> None:
        """Make cells for all keys that have numbers."""
        self._cells.grow(self.keys.count)

    def reach(self, clock: int) -> None:
        """The clock has come to a time, whether or not this rule has read anything since."""
        self.latest = clock if self.latest is None else max(self.latest, clock)

    def drop_expired(self) -> None:
        """Let every key drop what has left its window by the last moment that was read."""
        if self.latest is not None:
            self.held.drop_expired(self.latest)

    def clear_up(self) -> None:
        """Drop events that no key holds any more, if there are many."""
        enough = max(sizes().rows_of_a_table_before_clearing, self._cells.size // 2)
        if self.remembered.recent_rows > enough or self.remembered.is_heavy:
            self.forget_unheld()

    def forget_unheld(self) -> None:
        """Keep of earlier batches only the events that some key holds."""
        self.drop_expired()
        self.remembered.forget_all_but(distinct(readings_in(self.held)))


def readings_in(held: RuleCells) -> Rows:
    """The readings that some key holds in a slot, in any order."""
    counts = held.bound() & (held.slots > 0)
    counts[:, held.table.timer_slots] = False
    return np.asarray(held.slots[counts])
