"""The batch engine: tables of events in, tables of outputs out.

A batch goes through the correlations one after the other, each after those that feed it; what they
put out is put in order at the end. The state between batches is in the correlations, and a snapshot
of it is bytes. Events that are in Python already take the same way (`read_all`).

A batch is put in the order of its times. Rows that do not fit their types are kept in `rejected`,
and rows from before the time that an earlier batch has reached in `late`: neither stops anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ensue.engine.batch.batches import Batch, EventBatch, TableBatch, TableReading
from ensue.engine.batch.by_event import EventCorrelation
from ensue.engine.batch.column import Rows
from ensue.engine.batch.correlations import ColumnCorrelation, Path, Positions, Segment, path_of
from ensue.engine.batch.made import Made, MadeInTurn, join_tables, reordered
from ensue.engine.batch.order import (
    depth_of,
    event_positions,
    output_positions,
    reading_order,
)
from ensue.engine.batch.snapshots import (
    FORMAT,
    VERSION,
    EngineState,
    decode_correlation,
    decode_engine,
    encode_correlation,
    encode_engine,
    is_stepped,
)
from ensue.engine.batch.timed import TimedCorrelation
from ensue.engine.batch.together import Member, RuleGroup, likeness, runs_together
from ensue.engine.changing import is_unchanged
from ensue.engine.counts import Counts
from ensue.errors import UsageError
from ensue.events.arrow import CONTEXT_FIELDS, check_time_column
from ensue.events.arrow_types import field_of
from ensue.events.columns import extension_column
from ensue.events.event import Event, Rejected
from ensue.lang.checked import CheckedLibrary
from ensue.lang.printer import print_library
from ensue.lang.syntax import Correlation
from ensue.machine.prepared import brought_plan

ROWS_AT_ONCE = 1 << 18
"""How many rows go through at a time: few enough for their columns to stay in the cache."""

Output = tuple[Made | MadeInTurn, Positions]
Running = ColumnCorrelation | EventCorrelation | Member


class BatchEngine:
    """One library over one stream that comes in batches."""

    def __init__(self, library: CheckedLibrary, counts: Counts | None = None) -> None:
        self.counts = Counts() if counts is None else counts
        self.rejected: list[Rejected] = []
        self.late: list[Event] = []
        self.clock: int | None = None
        self.rows_read = 0
        self._positioned = 0
        self._set_up(library)

    def _set_up(self, library: CheckedLibrary) -> None:
        self._library = library
        self._types = library.types
        self._depth = depth_of(library.feeds) if any(library.feeds.values()) else 1
        self._readings: dict[pa.Schema, TableReading] = {}
        self.correlations: dict[str, Running] = {}
        self._groups: list[RuleGroup] = []
        names = [correlation.name for correlation in library.correlations]
        self._run_together(library)
        for number, correlation in enumerate(library.correlations):
            if correlation.name not in self.correlations:
                self._run_alone(correlation, number)
        self.correlations = {name: self.correlations[name] for name in names}
        self._numbers = {name: number for number, name in enumerate(names)}
        self._reading_order = reading_order(names, library.feeds)
        self._is_plain = not any(library.feeds.values()) and not any(
            isinstance(running, EventCorrelation | TimedCorrelation)
            for running in self.correlations.values()
        )

    def _run_together(self, library: CheckedLibrary) -> None:
        """Find groups of correlations that are alike, and neither feed others nor are fed."""
        linked = {name for name, feeds in library.feeds.items() if feeds}
        linked.update(name for feeds in library.feeds.values() for name in feeds)
        alike: dict[Correlation, list[int]] = {}
        for number, correlation in enumerate(library.correlations):
            common = None if correlation.name in linked else likeness(correlation)
            if common is not None:
                alike.setdefault(common, []).append(number)
        for numbers in alike.values():
            chosen = [library.correlations[number] for number in numbers]
            if len(chosen) == 1:
                continue
            path, machine = path_of(chosen[0], brought_plan(library, chosen[0]))
            if machine is None or not runs_together(path, machine):
                continue
            group = RuleGroup(chosen, numbers, path, machine, self._types, self.counts)
            self._groups.append(group)
            self.correlations.update((member.name, member) for member in group.members)

    def _run_alone(self, correlation: Correlation, number: int) -> None:
        path, machine = path_of(correlation, brought_plan(self._library, correlation))
        if machine is not None and path.name == "timed":
            self.correlations[correlation.name] = TimedCorrelation(
                correlation, path, machine, number, self._depth, self._types, self.counts
            )
        elif machine is not None:
            self.correlations[correlation.name] = ColumnCorrelation(
                correlation, path, machine, self._types, self.counts
            )
        else:
            self.correlations[correlation.name] = EventCorrelation(
                correlation, path, number, self._depth, self._types, self.counts
            )

    def _leave(self, group: RuleGroup) -> None:
        """Let the members of a group run on their own from now on."""
        self._groups.remove(group)
        for member, number in zip(group.members, group.numbers.tolist(), strict=True):
            state = encode_correlation(member)
            self._run_alone(self._library.correlations[number], number)
            decode_correlation(self.correlations[member.name], state)

    @property
    def paths(self) -> dict[str, Path]:
        """How each correlation runs at present."""
        return {name: running.path for name, running in self.correlations.items()}

    # --- tables -----------------------------------------------------------------------------------

    def push_batch(self, table: Any, source: str = "arrow") -> pa.Table:
        """Read a table (anything with `__arrow_c_stream__`), and return what follows from it."""
        made: list[pa.Table] = []
        for batch in self._batches(_as_table(table), source):
            outputs = self._run(batch, None)
            found = self._table(outputs)
            if found is not None:
                made.append(found)
        self._clear_up()
        return self._joined(made)

    def finish(self, until: int | None = None) -> pa.Table:
        """End the stream: let the clock go on to `until`, and return what follows from that."""
        if until is None:
            return self._joined([])
        found = self._table(self._run(EventBatch([], self._types), until))
        return self._joined([found] if found is not None else [])

    def _batches(self, table: pa.Table, source: str) -> Iterator[Batch]:
        reading = self._reading(table.schema, source)
        is_plain = reading.is_plain(table.schema)
        numbers = np.arange(self.rows_read + 1, self.rows_read + 1 + len(table))
        self.rows_read += len(table)
        self.counts.events += len(table)
        if not is_plain:
            yield from self._through_events(reading, table, numbers)
            return
        table, numbers = _in_order(table, numbers)
        if table.num_rows and table.column(0).num_chunks > 1 + table.num_rows // ROWS_AT_ONCE:
            table = table.combine_chunks()
        first = 0
        for rows in table.to_batches(max_chunksize=ROWS_AT_ONCE):
            yield from self._plain(reading, rows, numbers[first : first + len(rows)])
            first += len(rows)

    def _plain(self, reading: TableReading, rows: pa.RecordBatch, numbers: Rows) -> Iterator[Batch]:
        times, wrong = reading.times(rows)
        codes = reading.codes(rows)
        wrong = wrong | reading.misfits(rows, codes)
        if wrong.any():
            asked = np.flatnonzero(wrong)
            found = reading.read(rows.take(pa.array(asked)), numbers[asked])
            refused = [each for each in found if isinstance(each, Rejected)]
            if len(refused) < len(found):
                # Some fit after all, in a form that columns do not show: text that is a time.
                yield from self._through_events(reading, pa.table(rows), numbers)
                return
            self._refuse(refused)
            kept = np.flatnonzero(~wrong)
            rows, times, codes, numbers = (
                rows.take(pa.array(kept)),
                times[kept],
                codes[kept],
                numbers[kept],
            )
        if self.clock is not None and len(times) and times[0] < self.clock:
            early = int(np.searchsorted(times, self.clock))
            late = TableBatch(rows, reading, times, codes, numbers)
            self._come_late(late.events(np.arange(early)))
            rows, times, codes, numbers = (
                rows[early:],
                times[early:],
                codes[early:],
                numbers[early:],
            )
        if len(times):
            yield TableBatch(rows, reading, times, codes, numbers)

    def _through_events(
        self, reading: TableReading, table: pa.Table, numbers: Rows
    ) -> Iterator[Batch]:
        events: list[Event] = []
        first = 0
        for rows in table.to_batches():
            for each in reading.read(rows, numbers[first : first + len(rows)]):
                if isinstance(each, Event):
                    events.append(each)
                else:
                    self._refuse([each])
            first += len(rows)
        events.sort(key=lambda event: event.time)
        if self.clock is not None:
            clock = self.clock
            self._come_late([event for event in events if event.time < clock])
            events = [event for event in events if event.time >= clock]
        for start in range(0, len(events), ROWS_AT_ONCE):
            yield EventBatch(events[start : start + ROWS_AT_ONCE], self._types)

    def _refuse(self, records: Sequence[Rejected]) -> None:
        self.rejected += records
        self.counts.events -= len(records)

    def _come_late(self, events: Sequence[Event]) -> None:
        self.late += events
        self.counts.late += len(events)

    def _reading(self, schema: pa.Schema, source: str) -> TableReading:
        known = self._readings.get(schema)
        if known is None:
            known = TableReading(schema, self._types, source, "the table")
            check_time_column(schema.field("time").type, "the table")
            self._readings[schema] = known
        return known

    # --- events that are in Python already --------------------------------------------------------

    def read_all(self, events: Sequence[Event]) -> list[Event]:
        """Read events that are in order and conform; return what follows as events."""
        made = self._events(self._run(EventBatch(events, self._types), None))
        self._clear_up()
        return made

    def read(self, event: Event) -> list[Event]:
        return self.read_all([event])

    def advance(self, time: int) -> list[Event]:
        return self._events(self._run(EventBatch([], self._types), time))

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All that is needed to go on from here, in this process or another."""
        return encode_engine(
            EngineState(
                FORMAT,
                VERSION,
                self._fingerprint(),
                self.clock,
                self.rows_read,
                self._positioned,
                [encode_correlation(each) for each in self.correlations.values()],
            )
        )

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot; the engine has read nothing yet. Raises `SnapshotError`."""
        state = decode_engine(snapshot, self._fingerprint())
        self.clock = state.clock
        self.rows_read = state.rows_read
        self._positioned = state.positioned
        self._take_over(dict(zip(self.correlations, state.correlations, strict=True)))

    def go_on(self, clock: int | None, states: Mapping[str, bytes]) -> None:
        """Go on from the states of correlations, by their names; it has read nothing yet."""
        self.clock = clock
        self._take_over(states)

    def _fingerprint(self) -> str:
        return hashlib.sha256(print_library(self._library.tree).encode()).hexdigest()

    def change(self, library: CheckedLibrary) -> None:
        """Run another library from now on. A correlation that means the same keeps its state."""
        before = {each.name: each for each in self._library.correlations}
        states = {
            each.name: encode_correlation(self.correlations[each.name])
            for each in library.correlations
            if each.name in before
            and is_unchanged(before[each.name], each, self._types, library.types)
        }
        self._set_up(library)
        self._take_over(states)

    def _take_over(self, states: Mapping[str, bytes]) -> None:
        """Go on from the states of correlations, by their names."""
        for group in list(self._groups):
            # What had left its table before cannot be on one again.
            if any(m.name in states and is_stepped(states[m.name]) for m in group.members):
                self._leave(group)
        for name, state in states.items():
            decode_correlation(self.correlations[name], state)

    # --- one batch --------------------------------------------------------------------------------

    def _run(self, batch: Batch, until: int | None) -> list[Output]:
        """Every correlation over one batch, each after those that feed it."""
        if len(batch):
            last = int(batch.times[-1])
            self.clock = last if self.clock is None else max(self.clock, last)
        if until is not None:
            self.clock = until if self.clock is None else max(self.clock, until)
        first = self._positioned
        self._positioned += len(batch)
        if self._is_plain:
            positions = np.arange(first, first + len(batch)).reshape(-1, 1)
        else:
            positions = event_positions(batch.times, first, self._depth)
        base = Segment(batch, positions)
        fed: dict[str, list[Segment]] = {name: [] for name in self.correlations}
        outputs: list[Output] = []
        if len(batch):
            for group in self._groups:
                every = group.read(base)
                if len(every):
                    outputs.append((every, self._places_in_group(group, every, positions)))
        for name in self._reading_order:
            running = self.correlations[name]
            if isinstance(running, Member):
                continue
            segments = [base, *fed[name]] if len(batch) else fed[name]
            if isinstance(running, EventCorrelation):
                made, read = running.read(segments, self.clock)
            elif isinstance(running, TimedCorrelation):
                made, read = running.read_until(segments, self.clock)
            else:
                made, read = running.read(segments)
            if not len(made):
                continue
            places = self._placed(read, self._numbers[name])
            outputs.append((made, places))
            feeds = self._library.feeds.get(name, ())
            if feeds:
                segment = Segment(EventBatch(made.events(), self._types), places)
                for reader in feeds:
                    fed[reader].append(segment)
        for group in [each for each in self._groups if each.is_too_large]:
            self._leave(group)
        return outputs

    def _places_in_group(
        self, group: RuleGroup, made: MadeInTurn, positions: Positions
    ) -> Positions:
        if self._is_plain and len(group.members) == len(self.correlations):
            # Nobody else puts out anything, so these stand in the order of all already.
            return positions[:0]
        return self._placed(positions[made.at], group.numbers[made.rules])

    def _placed(self, read: Positions, number: Any) -> Positions:
        """The places of outputs in the order of all; `number` says whose they are."""
        if self._is_plain:
            return np.column_stack([read[:, 0], np.broadcast_to(number, len(read))])
        return output_positions(read, number)

    def _clear_up(self) -> None:
        for running in [*self.correlations.values(), *self._groups]:
            if isinstance(running, ColumnCorrelation | RuleGroup):
                running.clear_up()

    def _events(self, outputs: Sequence[Output]) -> list[Event]:
        if len(outputs) == 1 and self._is_plain:
            return outputs[0][0].events()
        every = [event for made, _ in outputs for event in made.events()]
        return [every[place] for place in _order(outputs)]

    def _table(self, outputs: Sequence[Output]) -> pa.Table | None:
        tables = [made.table(self._types) for made, _ in outputs]
        if not tables:
            return None
        if len(tables) == 1 and self._is_plain:
            return tables[0]
        return reordered(join_tables(tables), _order(outputs))

    def _joined(self, tables: Sequence[pa.Table]) -> pa.Table:
        found = join_tables(tables) if tables else self._empty()
        self.counts.outputs += len(found)
        return found

    def _empty(self) -> pa.Table:
        fields = list(CONTEXT_FIELDS)
        attributes: Mapping[str, Any] = {}
        for correlation in self._library.correlations:
            attributes = {**attributes, **self._types.attributes(correlation.output)}
        fields += [field_of(name, type_) for name, type_ in attributes.items()]
        names = ["correlation", "trigger", "labels", "causes"]
        if any(correlation.clauses.by for correlation in self._library.correlations):
            names.append("partitionkey")
        fields += [pa.field(extension_column(name), pa.string()) for name in names]
        return pa.schema(fields).empty_table()


def _order(outputs: Sequence[Output]) -> Rows:
    if not outputs:
        return np.empty(0, np.int64)
    positions = np.concatenate([places for _, places in outputs])
    return np.lexsort(positions.T[::-1])


def _as_table(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if not hasattr(table, "__arrow_c_stream__"):
        raise UsageError(
            f"a `{type(table).__name__}` gives no Arrow stream: hand over a pyarrow table, a"
            " data frame, or anything else with `__arrow_c_stream__`"
        )
    return pa.RecordBatchReader.from_stream(table).read_all()


def _in_order(table: pa.Table, numbers: Rows) -> tuple[pa.Table, Rows]:
    """The rows by their times, equal times as given. Most tables are in order already."""
    column = table.column("time")
    if column.null_count:
        return _sorted(table, numbers, column.fill_null(0))
    before: Any = None
    for chunk in column.chunks:
        values = chunk.cast(pa.int64()).to_numpy(zero_copy_only=False)
        if len(values) == 0:
            continue
        if (before is not None and values[0] < before) or (values[1:] < values[:-1]).any():
            return _sorted(table, numbers, column)
        before = values[-1]
    return table, numbers


def _sorted(table: pa.Table, numbers: Rows, column: Any) -> tuple[pa.Table, Rows]:
    order = np.argsort(column.cast(pa.int64()).to_numpy(), kind="stable")
    return table.take(pa.array(order)), numbers[order]
