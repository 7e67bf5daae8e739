"""The batch engine: tables of events in, tables of outputs out.

A table is cut into batches (`input.intake`), each batch goes through all correlations
(`ordered_pass`), and outputs leave as a table, as events or as lines (`output.columns`). The state
between batches is in the correlations; a snapshot of it is bytes (`snapshots`). Events that are in
Python already take this way too (`read_all`).

A batch is put in the order of its times. Rows that do not fit their types, or lie further ahead
than the clock may jump (`timing/jumps`), are kept in `rejected`, and rows from before the time that
an earlier batch has reached in `late`: neither stops anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ensue.engine.batch.input.batches import Batch
from ensue.engine.batch.input.intake import CheckedRows, EventBatch, Intake
from ensue.engine.batch.many.group import BatchGroup, GroupMember
from ensue.engine.batch.ordered_pass import OrderedPass
from ensue.engine.batch.output.columns import BatchOutputs, OutputForms
from ensue.engine.batch.output.schema import OutputSchema
from ensue.engine.batch.paths import Path
from ensue.engine.batch.related.correlation import LeavesColumnsError, RelatedCorrelation
from ensue.engine.batch.single.by_event import EventCorrelation
from ensue.engine.batch.single.correlation import ColumnCorrelation
from ensue.engine.batch.snapshots import (
    FORMAT,
    VERSION,
    EngineState,
    RunningRule,
    decode_correlation,
    decode_engine,
    encode_correlation,
    encode_engine,
)
from ensue.engine.changing import is_unchanged
from ensue.engine.counts import Counts
from ensue.engine.instance import ENDLESS
from ensue.engine.sizes import sizes
from ensue.engine.timing.agreeing import TimeRun
from ensue.engine.timing.alarms import OUTPUTS_OF_A_STEP, Sweeps, advance_in_steps, longest_wait
from ensue.engine.timing.jumps import UNBOUNDED, shortest_period
from ensue.events.event import Event, Rejected
from ensue.events.files.chunk import Chunk
from ensue.events.mapping import Mapping as ColumnMapping
from ensue.lang.checked import CheckedLibrary
from ensue.lang.printer import print_library

OUTPUTS_AT_ONCE = 1 << 17
"""About how many outputs of timers are made at once, where timers may fire far more often."""


class BatchEngine:
    """One library over one stream that comes in batches."""

    def __init__(
        self,
        library: CheckedLibrary,
        counts: Counts | None = None,
        max_jump: float = UNBOUNDED,
        columns: OutputSchema | None = None,
    ) -> None:
        """`columns` are the columns of output tables; by default, all that the library can have."""
        self.counts = Counts() if counts is None else counts
        self._given_columns = columns
        self.clock: int | None = None
        self._intake = Intake(library.types, self.counts, max_jump)
        self._next_row = 0
        self._passed_time = -ENDLESS
        self._set_up(library)
        self._sweeps = self._new_sweeps()

    def _set_up(self, library: CheckedLibrary) -> None:
        self._library = library
        self._types = library.types
        self._pass = OrderedPass(library, self.counts)
        self._arrangement = self._pass.arranged
        self._forms = OutputForms(library, self._pass.is_linked, self._given_columns)
        self._shortest = shortest_period(library)

    @property
    def correlations(self) -> dict[str, RunningRule]:
        """The object that runs each correlation, by name, in the order of the library."""
        return self._arrangement.running

    @property
    def rejected(self) -> list[Rejected]:
        return self._intake.rejected

    @property
    def late(self) -> list[Event]:
        return self._intake.late

    @property
    def rows_read(self) -> int:
        return self._intake.rows_read

    @property
    def paths(self) -> dict[str, Path]:
        """How each correlation runs at present."""
        return {name: running.path for name, running in self.correlations.items()}

    @property
    def has_timers(self) -> bool:
        """Whether time alone can make outputs."""
        return any(each.has_timers for each in self._timed())

    def _timed(self) -> Iterator[EventCorrelation | RelatedCorrelation | BatchGroup]:
        """The rules alone and the groups that may have timers."""
        for each in self.correlations.values():
            if isinstance(each, EventCorrelation | RelatedCorrelation):
                yield each
        yield from self._arrangement.groups

    # --- tables -----------------------------------------------------------------------------------

    def push_batch(
        self, table: Any, source: str = "arrow", mapping: ColumnMapping | None = None
    ) -> pa.Table:
        """Read a table (anything with `__arrow_c_stream__`), and return its outputs.

        A mapping says which of its columns are what.
        """
        return self._forms.joined(list(self.push_in_parts(table, source, mapping)))

    def push_in_parts(
        self, table: Any, source: str = "arrow", mapping: ColumnMapping | None = None
    ) -> Iterator[pa.Table]:
        """What `push_batch` returns, in parts as they are made, each with the columns it needs."""
        for found in self.read_table(table, source, mapping):
            yield found.table()

    def read_table(
        self, table: Any, source: str = "arrow", mapping: ColumnMapping | None = None
    ) -> Iterator[BatchOutputs]:
        """Read a table; returns its outputs in parts, which become tables, events or lines."""
        self._make_room()
        for batch in self._intake.batches(table, source, self.clock, mapping):
            yield from self._counted(self._run_in_steps(batch))
        self._clear_up()

    def _counted(self, parts: Iterator[BatchOutputs]) -> Iterator[BatchOutputs]:
        for found in parts:
            if len(found):
                self.counts.outputs += len(found)
                yield found

    # --- chunks of files --------------------------------------------------------------------------

    def check(self, chunk: Chunk) -> CheckedRows:
        """Which rows of a chunk are events of this library, and what is wrong with the others."""
        return self._intake.check(chunk)

    def keep_to(self, span: TimeRun) -> None:
        """Reject rows before and after a span of times, where `read_batch` meets them."""
        self._intake.keep_to(span)

    def read_batch(self, batch: Batch) -> Iterator[BatchOutputs]:
        """Read rows that were checked, and are in order; returns their outputs.

        Rows that lie too far ahead are in `rejected` afterwards.
        """
        self._make_room()
        for near in self._intake.in_reach(batch):
            yield from self._counted(self._run_in_steps(near))
        self._clear_up()

    def advance_to(self, time: int) -> Iterator[BatchOutputs]:
        """Move the clock on to a time; returns the outputs of timers up to then."""
        yield from self._counted(self._advance_in_steps(time))

    # --- the end ----------------------------------------------------------------------------------

    def finish(self, until: int | None = None) -> pa.Table:
        """End the stream: move the clock on to `until`, and return the outputs of timers."""
        return self._forms.joined(list(self.finish_in_parts(until)))

    def finish_in_parts(self, until: int | None = None) -> Iterator[pa.Table]:
        """What `finish` returns, in parts as they are made; there may be none."""
        if until is not None:
            for found in self._counted(self._advance_in_steps(until)):
                yield found.table()

    # --- events that are in Python already --------------------------------------------------------

    def read_all(self, events: Sequence[Event]) -> list[Event]:
        """Read events that are in order and conform; return their outputs as events."""
        return [output for part in self.read_all_in_parts(events) for output in part]

    def read_all_in_parts(self, events: Sequence[Event]) -> Iterator[list[Event]]:
        self._make_room()
        batch = EventBatch(events, self._types)
        for found in self._run_in_steps(batch, OUTPUTS_OF_A_STEP):
            yield found.events()
        self._clear_up()

    def read(self, event: Event) -> list[Event]:
        return self.read_all([event])

    def read_in_parts(self, event: Event) -> Iterator[list[Event]]:
        yield from self.read_all_in_parts([event])

    def advance(self, time: int) -> list[Event]:
        return [output for part in self.advance_in_parts(time) for output in part]

    def advance_in_parts(self, time: int) -> Iterator[list[Event]]:
        for found in self._advance_in_steps(time, OUTPUTS_OF_A_STEP):
            yield found.events()

    # --- steps of the clock -----------------------------------------------------------------------

    def _advance_in_steps(self, time: int, most: int = OUTPUTS_AT_ONCE) -> Iterator[BatchOutputs]:
        """The outputs of timers up to a time, in parts of about so many at the most."""
        nothing = EventBatch([], self._types)
        yield from advance_in_steps(time, self.next_due, lambda to: self._run(nothing, to), most)
        self.clock = time if self.clock is None else max(self.clock, time)

    def _run_in_steps(self, batch: Batch, most: int = OUTPUTS_AT_ONCE) -> Iterator[BatchOutputs]:
        """The outputs of a batch, in parts where timers fire very often or rules are fed."""
        done, count, times = 0, len(batch), batch.times
        step, most_rows = self._time_of_a_step(batch), self._pass.most_rows or count
        while done < count:
            now = int(times[done]) if self.clock is None else self.clock
            end = count if step is None else int(np.searchsorted(times, now + step, "right"))
            if end == done:
                yield from self._advance_in_steps(int(times[done]), most)
                end = int(np.searchsorted(times, times[done], "right"))
            end = min(end, done + most_rows)
            whole = done == 0 and end == count
            made = self._run(batch if whole else batch.since(done, end), None)
            done = end
            if len(made):
                yield made
            if step is not None:
                step = max(1, step // 2) if len(made) > most else 2 * step

    def _time_of_a_step(self, batch: Batch) -> int | None:
        """The span of time that goes through at once; None if the whole batch is small enough."""
        if self._shortest is None or not len(batch):
            return None
        first = int(batch.times[0]) if self.clock is None else self.clock
        keys = len(batch) + sum(each.keys.count for each in self._arrangement.groups)
        keys += sum(
            len(each.instances)
            for each in self.correlations.values()
            if isinstance(each, EventCorrelation)
        )
        if keys * (int(batch.times[-1]) - first) <= OUTPUTS_AT_ONCE * self._shortest:
            return None
        return max(1, OUTPUTS_AT_ONCE * self._shortest // keys)

    def pass_time(self, time: int) -> None:
        """Let windows end by a time, where no rule has timers; rows before it are still read."""
        self._passed_time = max(self._passed_time, time)

    def may_be_due(self, time: int) -> bool:
        due = self.next_due()
        return due is not None and due <= time

    def next_due(self) -> int | None:
        """When the first timer is due, if no event comes before."""
        due = [each.next_due() for each in self._timed()]
        return min((each for each in due if each is not None), default=None)

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
                self._next_row,
                [*self.states().values()],
            )
        )

    def states(self) -> dict[str, bytes]:
        """The states of correlations, by their names, without what has left a window by now."""
        if self.clock is not None:
            now = max(self.clock, self._passed_time)
            for each in [*self.correlations.values(), *self._arrangement.groups]:
                if not isinstance(each, GroupMember):
                    each.reach(now)
        return {name: encode_correlation(each) for name, each in self.correlations.items()}

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot; the engine has read nothing yet. Raises `SnapshotError`."""
        state = decode_engine(snapshot, self._fingerprint())
        self.clock = state.clock
        self._intake.rows_read = state.rows_read
        self._next_row = state.positioned
        self._restore_rules(dict(zip(self.correlations, state.correlations, strict=True)))

    def restore_states(self, clock: int | None, states: Mapping[str, bytes]) -> None:
        """Go on from the states of correlations, by their names; it has read nothing yet."""
        self.clock = clock
        self._restore_rules(states)

    def _fingerprint(self) -> str:
        return hashlib.sha256(print_library(self._library.tree).encode()).hexdigest()

    def change(self, library: CheckedLibrary) -> None:
        """Run another library from now on. A correlation that means the same keeps its state."""
        before = {each.name: each for each in self._library.correlations}
        known = self.states()
        states = {
            each.name: known[each.name]
            for each in library.correlations
            if each.name in before
            and is_unchanged(before[each.name], each, self._types, library.types)
        }
        self._set_up(library)
        self._intake.change(library.types)
        self._restore_rules(states)
        self._sweeps = self._new_sweeps()

    def _restore_rules(self, states: Mapping[str, bytes]) -> None:
        """Go on from the states of correlations, by their names."""
        for name, state in states.items():
            running = self.correlations[name]
            try:
                goes_on = decode_correlation(running, state)
                if not goes_on and isinstance(running, GroupMember):
                    self._arrangement.release(running.group, name)
                    goes_on = decode_correlation(self.correlations[name], state)
                why = "it had left its table before"
            except LeavesColumnsError as error:
                goes_on, why = False, str(error)
            if not goes_on:
                decode_correlation(self._arrangement.begin_by_event(name, why), state)

    # --- one batch --------------------------------------------------------------------------------

    def _run(self, batch: Batch, until: int | None) -> BatchOutputs:
        """The outputs of a batch, and of timers that are due up to `until` behind it."""
        reached = [int(batch.times[-1])] if len(batch) else []
        reached += [each for each in (until, self.clock) if each is not None]
        self.clock = max(reached, default=None)
        first = self._next_row
        self._next_row += len(batch)
        return self._forms.of_batch(self._pass.run(batch, first, self.clock))

    def _clear_up(self) -> None:
        """Drop events that no key holds, and keys whose windows and timeouts have passed."""
        for running in [*self.correlations.values(), *self._arrangement.groups]:
            if isinstance(running, ColumnCorrelation | RelatedCorrelation | BatchGroup):
                running.clear_up()
        if self.clock is None:
            return
        if self._sweeps.due == -ENDLESS:
            self._sweeps.begin(self.clock)
        if (
            self.clock >= self._sweeps.due
            and self._numbered_keys() > sizes().keys_before_a_timed_sweep
        ):
            self._sweep(self.clock)

    def _make_room(self) -> None:
        """Drop keys that hold nothing, where there are many, before more is read."""
        if self.clock is not None and self._numbered_keys() > self._sweeps.most_keys:
            self._sweep(self.clock)

    def _sweep(self, clock: int) -> None:
        # Keys keep their numbers as long as a run goes on, also keys that hold nothing.
        before, states = self._numbered_keys(), self.states()
        self._set_up(self._library)
        self._restore_rules(states)
        self._sweeps.done(before, self._numbered_keys(), clock)

    def _new_sweeps(self) -> Sweeps:
        return Sweeps(
            sizes().keys_before_a_sweep_in_columns,
            longest_wait(self._library.correlations),
            growth=4,
        )

    @property
    def keys_held(self) -> int:
        """For how many keys the correlations hold something, in columns or event by event."""
        singly = (
            len(each.instances)
            for each in self.correlations.values()
            if isinstance(each, EventCorrelation)
        )
        return self._numbered_keys() + sum(singly)

    def _numbered_keys(self) -> int:
        """How many keys are numbered, and have cells, in all correlations."""
        numbered = {
            id(each.keys): each.keys.count
            for each in self.correlations.values()
            if not isinstance(each, EventCorrelation)
        }
        return sum(numbered.values())
