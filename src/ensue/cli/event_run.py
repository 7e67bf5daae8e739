"""A run event by event, and the report at the end of every run.

Events and refused records come in, in the order in which they are read; outputs go to
`OutputWriter`. Without a lateness, the whole input is read and sorted by time first; with a
lateness, it is read as a stream.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from ensue.cli import hints
from ensue.cli.followed.grown_outputs import GrownOutputs
from ensue.cli.followed.journal import Journal
from ensue.cli.followed.position import Clock
from ensue.cli.outputs import OutputWriter
from ensue.cli.progress import ProgressDisplay
from ensue.cli.reasons import tell_what_is_missing, tell_why
from ensue.cli.side_outputs import LateEvents, RefusedRecords
from ensue.cli.start.process import load_pyarrow, loading
from ensue.cli.terminal import counted, say
from ensue.engine.counts import Counts
from ensue.engine.run import Run
from ensue.engine.timing import jumps
from ensue.engine.timing.agreeing import largest_span
from ensue.errors import EventError, UsageError
from ensue.events.event import Event, Rejected
from ensue.events.last_record import LastRecord
from ensue.events.records.following import ComingBlock, Follower
from ensue.events.times import format_time
from ensue.lang.checked import CheckedLibrary
from ensue.library import Library

if TYPE_CHECKING:
    from ensue.engine.running.chunks import ChunkStream
    from ensue.events.files.chunk import Chunk

_SMALL_BLOCK = 1 << 16
"""Blocks up to this size are read faster event by event, also where all has been loaded."""
OUTPUTS_AT_ONCE = 1024
"""How many outputs are written at once."""
MOST_TIMERS_AT_ONCE = 1000
"""The most timers that fire before the next event, or the end, is looked for."""


class EventRun:
    """A run event by event, with its outputs, refused records and late events.

    `last` has the record that was read last. `is_live` writes outputs at once. `by_wall_clock` lets
    the clock of the machine fire timers. A followed run may have a `journal`. Blocks of
    `columns_from` bytes and more are read in columns, on the engine `batch`, and so are those that
    come right behind; while nothing comes, or little, the run is on the engine `step`.
    """

    def __init__(
        self,
        run: Run,
        last: LastRecord,
        refused: RefusedRecords,
        late: LateEvents,
        outputs: OutputWriter | GrownOutputs,
        is_live: bool,
        by_wall_clock: bool,
        strict: bool,
        explain: bool,
        library: CheckedLibrary,
        journal: Journal | None = None,
        columns_from: int | None = None,
    ) -> None:
        self.run = run
        self._columns_from = columns_from
        self._stream: ChunkStream | None = None
        self._library = library
        self._journal = journal
        self.late = late
        self.latest: int | None = None
        self.due: int | None = None
        self.seen = hints.SeenEvents.of(library)
        self._last = last
        self._refused = refused
        self._outputs = outputs
        self._is_live = is_live
        self._by_wall_clock = by_wall_clock
        self._strict = strict
        self._explain = explain

    @property
    def counts(self) -> Counts:
        return self.run.counts

    def feed(
        self,
        records: Iterator[ComingBlock | Event | Rejected | None],
        in_order: bool,
        bars: ProgressDisplay,
    ) -> bool:
        """Read all records. False if a refused record has stopped the run."""
        if in_order:
            return self._take_all(records)
        read: list[tuple[Event, LastRecord]] = []
        # All that is read stays: there is no garbage to look for.
        with loading():
            for record in records:
                assert not isinstance(record, ComingBlock), "what is followed is in order"
                if isinstance(record, Event):
                    read.append((record, self._last.kept()))
                elif record is not None:
                    self._refused.take(record)
                    if self._strict:
                        return False
        # The sort is stable: events of one time stay in the order given.
        read.sort(key=lambda each: each[0].time)
        first, last = largest_span([event.time for event, _ in read], self.run.max_jump)
        left_out = [*read[:first], *read[last:]]
        read = read[first:last]
        if left_out and not self._refuse_far(left_out, read[0][0].time, read[-1][0].time):
            return False
        if self.run.reads_many:
            events = [event for event, _ in read]
            self.latest = events[-1].time if events else None
            self.seen.take_all(events)
            self._write_all(self.run.push_all_iter(bars.running(events)))
            return True
        return self._take_all(self._again(bars.running(read)))

    def _again(self, read: Iterator[tuple[Event, LastRecord]]) -> Iterator[Event]:
        for event, self._last in read:
            yield event

    # --- many events at once ----------------------------------------------------------------------

    def _take_block(self, block: ComingBlock) -> bool:
        """Deal with the records of a block. False to stop."""
        if self._stream is not None and block.size < _SMALL_BLOCK:
            self._leave_columns()
        least = self._columns_from
        if self._stream is None and least is not None and block.size >= least:
            self._enter_columns()
        if self._stream is None:
            return self._take_all(block.records())
        for each in block.chunks():
            if isinstance(each, Event):
                self._leave_columns()
            if not (self._take(each) if isinstance(each, Event | Rejected) else self._read(each)):
                return False
        return True

    def _read(self, chunk: Chunk) -> bool:
        """Deal with the records of a chunk. False to stop."""
        if self._stream is None:
            self._enter_columns()
        stream = self._stream
        assert stream is not None
        arrived = stream.arrive(chunk, self._now if self._by_wall_clock else None)
        for record in arrived.refused:
            self._refused.take(record)
            if self._strict:
                return False
        for outputs in stream.read():
            self._outputs.write_columns(outputs)
        if self._is_live:
            self._outputs.flush()
        self.late.take_new(stream.late)
        stream.late.clear()
        self.latest = stream.order.latest
        self.seen.take_batch(arrived.batch, arrived.ahead)
        return True

    def _enter_columns(self) -> None:
        # With it come NumPy and pyarrow, which a run of single events does not need.
        with loading():
            load_pyarrow()
            from ensue.engine.running.chunks import ChunkStream

            self.run = Run.resume(self._library, self.run.snapshot(), "batch")
            self._stream = ChunkStream.of(self.run)

    def _leave_columns(self) -> None:
        if self._stream is not None:
            self._stream.put_back()
            self._stream = None
            self.run = Run.resume(self._library, self.run.snapshot(), "step")

    def snapshot(self) -> bytes:
        """The state of the engine."""
        if self._stream is not None:
            self._stream.put_back()
        return self.run.snapshot()

    def _refuse_far(self, read: list[tuple[Event, LastRecord]], begins: int, ends: int) -> bool:
        """Refuse events whose times lie too far from all others. False if that stops the run."""
        for event, origin in read:
            why = jumps.far_problem(event.time, begins, ends, self.run.max_jump)
            self._refused.take(origin.refused([why]))
            if self._strict:
                return False
        return True

    def _take_all(self, records: Iterator[ComingBlock | Event | Rejected | None]) -> bool:
        return all(map(self._take, records))

    def _take(self, record: ComingBlock | Event | Rejected | None) -> bool:
        """Deal with what has come, or with the time while nothing comes. False to stop."""
        if isinstance(record, ComingBlock):
            return self._take_block(record)
        if record is None:
            self._leave_columns()
            self._wait()
        if isinstance(record, Event):
            if not self._push(record):
                return False
            if self.run.late:
                self.run.late = self.late.take(self.run.late)
        if isinstance(record, Rejected):
            self._refused.take(record)
            return not self._strict
        return True

    def again(self, journal: Journal, follower: Follower) -> None:
        """Take the steps that a run of before took after its last state."""
        for step in journal.steps():
            journal.taking(step)
            if isinstance(step.what, Clock):
                self._write_all(self.run.advance_iter(step.what.time))
                continue
            try:
                for record in follower.again(step.what):
                    self._take(record)
            except EventError as error:
                say(str(error), "yellow")
        journal.caught_up()

    def _push(self, event: Event) -> bool:
        """Read an event, which may be refused for its time or by a history. False to stop."""
        try:
            if self._by_wall_clock:
                jumps.check_ahead_of_now(event.time, self._now, self.run.max_jump)
            outputs = self.run.push_iter(event)
            if (first := next(outputs, None)) is not None:
                self._write_all(chain([first], outputs))
        except EventError as error:
            self._refused.take(self._last.refused(error.problems))
            return not self._strict
        if self.latest is None or event.time > self.latest:
            self.latest = event.time
        self.seen.take(event)
        return True

    @property
    def _now(self) -> int:
        """The present time, in microseconds; of a step that is taken again, the time it had."""
        return time.time_ns() // 1000 if self._journal is None else self._journal.now

    def _wait(self) -> None:
        """Fire the timers that are due by the clock of this machine, while no event comes.

        The clock of the run moves to the due times and not to the present time, so that an event
        still in transit is not late because of it.
        """
        if self._by_wall_clock:
            now = time.time_ns() // 1000
            for _ in range(MOST_TIMERS_AT_ONCE):
                due = self.run.next_due()
                if due is None or due > now:
                    break
                if self._journal is not None:
                    self._journal.clock(due)
                self._write_all(self.run.advance_iter(due))

    def finish(self, until: int | None) -> None:
        self._leave_columns()
        if self._journal is None:
            self._write_all(self.run.finish_iter(until))
        else:
            self._pause(self._journal, until)
        if until is None and not self._by_wall_clock:
            # Not every engine can tell its next timer.
            with suppress(UsageError):
                self.due = self.run.next_due()
        self._outputs.finish()
        if self._journal is not None:
            self._journal.save()

    def _pause(self, journal: Journal, until: int | None) -> None:
        """Read what waits, and move the clock on to `until`, so that a later run can go on."""
        ends = [self.run.end_of_waiting()]
        ends += [None if until is None else until + self.run.lateness]
        for end in sorted(each for each in ends if each is not None):
            journal.clock(end)
            self._write_all(self.run.advance_iter(end))

    def _write_all(self, outputs: Iterator[Event]) -> None:
        """Write outputs as they come, since a jump of the clock may fire very many timers."""
        while written := list(islice(outputs, OUTPUTS_AT_ONCE)):
            self._write(written)

    def _write(self, outputs: list[Event]) -> None:
        wanted = self._outputs.write_events(outputs) if outputs else []
        if not wanted:
            return
        if self._explain:
            tell_why(self.run, wanted)
        if self._is_live:
            self._outputs.flush()


@dataclass(frozen=True)
class RunReport:
    """The figures of a run that has ended, for its summary."""

    library: Library
    counts: Counts
    seen: hints.SeenEvents
    latest: int | None
    refused: RefusedRecords
    outputs: OutputWriter | GrownOutputs
    late: LateEvents | None = None
    explained: Run | None = None
    only: str | None = None
    due: int | None = None
    unit: str | None = None

    def tell(self, out: str | None, until: int | None) -> None:
        """Print hints, and the summary in a line."""
        if until is not None and self.latest is not None and until < self.latest:
            say(
                f"`--until` lies before the last event ({format_time(self.latest)}), so it had no"
                " effect",
                "yellow",
            )
        if self.explained is not None:
            tell_what_is_missing(self.explained, self._names)
        self.refused.tell()
        self._give_hints()
        parts = [f"{counted(self.counts.events, 'event')} read"]
        parts += [self.refused.summary()] if self.refused.count else []
        parts += [self.late.summary()] if self.late is not None and self.counts.late else []
        if self.counts.begun_anew:
            parts.append(f"the clock restarted {counted(self.counts.begun_anew, 'time')}")
        parts += [
            f"{self.counts.without_key[name]:,} without a key for `{name}`"
            for name in self._names
            if self.counts.without_key[name]
        ]
        place = f" in `{out}`" if out else ""
        say(f"{', '.join(parts)}; {counted(self.outputs.written, 'output')}{place}", "dim")

    @property
    def _names(self) -> Sequence[str]:
        """The correlations whose outputs are asked for."""
        return self.library.correlations.names if self.only is None else [self.only]

    def _give_hints(self) -> None:
        checked = self.library.checked
        without_key = Counter({name: self.counts.without_key[name] for name in self._names})
        found = self.refused.hints(self.counts.events)
        about_types = hints.about_types(self.seen.types, checked, bool(self.outputs.written))
        found += [] if about_types is None else [about_types]
        found += hints.about_keys(without_key, self.seen.examples, checked)
        silent = self.outputs.silent.intersection(self._names)
        others = {*self._names} - silent
        found += hints.about_absent(self.seen, checked, silent, others=others)
        about_1970 = hints.about_1970(self.seen, self.unit)
        found += [] if about_1970 is None else [about_1970]
        if self.due is not None and not self.outputs.written:
            found.append(
                "the clock stopped at the last event, before the next timer:"
                f" `--until {format_time(self.due)}` lets it go on to that timer"
            )
        for hint in found:
            say(hint, "yellow")

    @property
    def could_read_nothing(self) -> bool:
        return bool(self.refused.count) and not self.counts.events
