"""A run over files or a pipe that ends, in columns, on the engine `batch`.

Without a lateness, chunks go to the engine as they are read, as long as their events are in the
order of their times. At the first chunk out of order all outputs are discarded, the events of all
files are sorted by time, and the run starts again; what has been read by then is kept, up to
`KEPT_BYTES`, and not read again. With a lateness, the events of each chunk are put in order as a
stream's (`ensue.engine.timing.column_ordering`). A refused record is reported once, in the order of
the files.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.cli.hints import SeenEvents
from ensue.cli.outputs import OutputWriter
from ensue.cli.progress import ProgressDisplay
from ensue.cli.side_outputs import LateEvents, RefusedRecords
from ensue.cli.start.process import load_pyarrow, loading
from ensue.cli.terminal import say
from ensue.engine.counts import Counts
from ensue.engine.timing.agreeing import TimeRun, TimeRuns
from ensue.engine.timing.jumps import UNBOUNDED, check_advance
from ensue.engine.timing.ordering import Ordering
from ensue.errors import UsageError
from ensue.events.event import Rejected
from ensue.events.kernels.kept import has_compiled_loops
from ensue.events.mapping import Mapping
from ensue.events.sources import InputFile
from ensue.lang.checked import CheckedLibrary

if TYPE_CHECKING:
    from ensue.engine.batch import BatchEngine
    from ensue.engine.batch.input.batches import Batch
    from ensue.engine.batch.input.intake import CheckedRows
    from ensue.engine.batch.output.columns import BatchOutputs
    from ensue.engine.running.chunks import ChunkStream
    from ensue.events.files.chunk import Chunk
    from ensue.events.files.ordered import HeldRows

SMALL_BYTES = 1 << 22
"""Inputs up to this size are read faster event by event: loading pyarrow and Numba takes longer."""

SMALL_BYTES_AT_FIRST = 1 << 25
"""As `SMALL_BYTES`, if the loops have yet to be compiled on this machine."""

KEPT_BYTES = 1 << 26
"""The bytes of chunks in order that are kept, in case that a later one is out of order."""


SECONDS_OF_A_PIPE = 0.5
"""How long the first bytes of a stream are waited for: one that is slower than `SMALL_BYTES` in
this time comes no faster than it is read event by event."""


def gathered(inputs: Sequence[InputFile], is_stream: bool) -> list[InputFile]:
    """The inputs, with as many bytes of pipes as tell whether they are large enough."""
    seconds = SECONDS_OF_A_PIPE if is_stream else None
    return [each.gathered(enough_for_columns() + 1, seconds) for each in inputs]


def enough_for_columns() -> int:
    """From how many bytes on a run in columns is quicker."""
    return SMALL_BYTES if has_compiled_loops() else SMALL_BYTES_AT_FIRST


def is_for_columns(inputs: Sequence[InputFile]) -> bool:
    """Whether the inputs are large enough for a run in columns."""
    enough = enough_for_columns()
    size = 0
    for each in inputs:
        size += _unpacked_size(each, enough)
        if size > enough:
            return True
    return False


def _unpacked_size(each: InputFile, most: int) -> int:
    """The uncompressed size of a file: exact up to `most`, and above it only some larger number.

    A small compressed file may hold gigabytes, so it is decompressed up to `most`.
    """
    if not each.is_packed or each.size is None or each.size > most:
        return each.known_size
    load_pyarrow()
    try:
        if each.format == "parquet":
            return _size_in_columns(each, most) if each.is_file else most + 1
        with closing(each.open()) as file:
            return max(each.size, len(file.read(most + 1)))
    except (OSError, UsageError):
        # The error is reported when the events are read.
        return each.size


def _size_in_columns(each: InputFile, most: int) -> int:
    from ensue.events.records.parquet import open_parquet, parquet_batches

    size = 0
    with ExitStack() as stack:
        for batch in parquet_batches(open_parquet(Path(each.path), each.name, stack), each.name):
            size += batch.nbytes
            if size > most:
                break
    return size


def _say_compiling() -> None:
    """Explain the delay of the first run to a user at a terminal."""
    if sys.stderr.isatty():
        say("compiling for this machine; this is done once, and later runs start at once", "dim")


class ColumnRun:
    """A run in columns: its engine, its counts and its refused records.

    With a `lateness`, events are read as those of a stream; its late events go to `late`. With
    `is_live`, outputs are written as they come.
    """

    def __init__(
        self,
        library: CheckedLibrary,
        inputs: Sequence[InputFile],
        mapping: Mapping,
        outputs: OutputWriter,
        refused: RefusedRecords,
        late: LateEvents,
        lateness: int | None,
        strict: bool,
        bars: ProgressDisplay,
        max_jump: float,
        is_live: bool,
    ) -> None:
        self._library = library
        self._inputs = inputs
        self._mapping = mapping
        self._outputs = outputs
        self._refused = refused
        self._late = late
        self._lateness = lateness
        self._is_live = is_live
        self._stream: ChunkStream | None = None
        self._strict = strict
        self._bars = bars
        self._max_jump = max_jump
        self._reported_chunks = 0
        self._span: TimeRun | None = None
        self.due: int | None = None
        with loading():
            load_pyarrow()
            from ensue.events.kernels.compiling import before_compiling

            before_compiling[:] = [_say_compiling]
            self._start()
            if lateness is not None:
                self._stream = self._new_stream(lateness)

    def _start(self) -> None:
        self.seen = SeenEvents.of(self._library)
        self.latest: int | None = None
        self._engine = self._new_engine()

    def _new_engine(self, counts: Counts | None = None) -> BatchEngine:
        from ensue.engine.batch import BatchEngine

        # The order of a stream has refused the events that are too far ahead.
        allowed = self._max_jump if self._lateness is None else UNBOUNDED
        return BatchEngine(self._library, counts, allowed, self._outputs.columns)

    def _new_stream(self, lateness: int) -> ChunkStream:
        from ensue.engine.running.chunks import ChunkStream
        from ensue.engine.timing.column_ordering import ColumnOrdering

        order = ColumnOrdering(Ordering(lateness, self._max_jump))
        counts = self._engine.counts
        return ChunkStream(
            self._library.types, order, counts, self._engine, lambda: self._new_engine(counts)
        )

    @property
    def counts(self) -> Counts:
        return self._engine.counts

    def read(self) -> bool:
        """Read all events. False if a refused record has stopped the run."""
        if self._stream is not None:
            return self._read_stream(self._stream)
        if any(each.size is None for each in self._inputs):
            # An input that can be read only once is kept until it is complete.
            with closing(self._chunks()) as chunks:
                return self._read_sorted([], enumerate(chunks), is_known=False)
        self._outputs.hold_back()
        kept: list[HeldRows] = []
        kept_bytes = 0
        with closing(self._chunks()) as chunks:
            numbered = enumerate(chunks)
            for number, (file, chunk) in numbered:
                checked = self._engine.check(chunk)
                if not self._report(number, file, checked.rejected):
                    return False
                kept_bytes += chunk.held_bytes
                kept = [*kept, _held(file, chunk, checked)] if kept_bytes <= KEPT_BYTES else []
                in_order = self._is_in_order(checked.batch)
                if not in_order or self._jumps(checked.batch):
                    self._outputs.restart()
                    self._start()
                    if kept_bytes <= KEPT_BYTES:
                        return self._read_sorted(kept, numbered, is_known=not in_order)
                    break
                if not self._run(checked.batch):
                    return False
            else:
                return True
        with closing(self._chunks()) as chunks:
            return self._read_sorted([], enumerate(chunks), is_known=not in_order)

    def _jumps(self, batch: Batch) -> bool:
        """Whether the times of a batch jump too far. Then the jumps of all files are examined."""
        import numpy as np

        if self._max_jump == UNBOUNDED or not len(batch):
            return False
        begin = batch.times[0] if self.latest is None else self.latest
        return bool((np.diff(batch.times, prepend=begin) > self._max_jump).any())

    def finish(self, until: int | None) -> None:
        stream = self._stream
        if stream is not None and stream.order.latest is not None:
            self.latest = stream.order.latest
        if until is not None:
            latest = -math.inf if self.latest is None else self.latest
            check_advance(until, latest, self._max_jump)
        if stream is not None:
            self._write(stream.rest())
            self._engine = stream.engine
        if until is not None:
            self._write(self._engine.advance_to(until))
        elif stream is not None and (due := self._engine.next_due()) is not None:
            self.due = due + stream.order.lateness
        self._outputs.finish()

    def _chunks(self) -> Any:
        from ensue.events.files.ahead import ahead
        from ensue.events.files.reading import read_chunks

        types = self._library.types
        return ahead(read_chunks(self._inputs, types, self._mapping, self._bars.reading))

    def _read_sorted(self, kept: Sequence[HeldRows], chunks: Iterable[Any], is_known: bool) -> bool:
        """Read chunks that were kept, and all others, in the order of their times."""
        from ensue.engine.batch.input.intake import add_times
        from ensue.events.files.ahead import ahead
        from ensue.events.files.ordered import OrderedRecords

        records = OrderedRecords(self._inputs, self._library.types, self._mapping)
        runs = TimeRuns(self._max_jump)

        def add(held: HeldRows) -> None:
            records.add(held)
            if self._max_jump != UNBOUNDED:
                add_times(runs, held.times, self._max_jump)

        for held in kept:
            add(held)
        for number, (file, chunk) in chunks:
            checked = self._engine.check(chunk)
            if not self._report(number, file, checked.rejected):
                return False
            add(_held(file, chunk, checked))
        if records.is_outside_memory:
            say("the events are too many for memory, and are sorted by time on disk", "dim")
        elif is_known:
            say("the events are not in the order of their times, and are sorted first", "dim")
        self._span = runs.largest()
        if self._span is not None:
            self._engine.keep_to(self._span)
        with closing(ahead(records.chunks())) as in_order:
            for chunk in in_order:
                if not self._run(self._engine.check(chunk).batch):
                    return False
        return True

    # --- a stream in order within its lateness ----------------------------------------------------

    def _read_stream(self, stream: ChunkStream) -> bool:
        with closing(self._chunks()) as chunks:
            for file, chunk in chunks:
                arrived = stream.arrive(chunk)
                if not self._take_refused(file, arrived.refused):
                    return False
                self._write(stream.read())
                self._late.take_new(stream.late)
                stream.late.clear()
                self.seen.take_batch(arrived.batch, arrived.ahead)
                self._bars.counted(self.counts.events, self._outputs.written)
        return True

    def _take_refused(self, file: InputFile, refused: Sequence[Rejected]) -> bool:
        """Keep the refused records of a chunk in their order. False if one stops the run."""
        for each in refused:
            path = None if file.is_stdin else file.path
            self._refused.take(Rejected(each.number, each.raw, each.problems, path))
            if self._strict:
                return False
        return True

    # --- chunks in order --------------------------------------------------------------------------

    def _report(self, number: int, file: InputFile, rejected: Sequence[Rejected]) -> bool:
        """Report the refused records of a chunk, once. False if one of them stops the run."""
        if number < self._reported_chunks:
            return True
        self._reported_chunks = number + 1
        return self._take_refused(file, rejected)

    def _is_in_order(self, batch: Batch) -> bool:
        times = batch.times
        if not len(times):
            return True
        if self.latest is not None and times[0] < self.latest:
            return False
        return bool((times[1:] >= times[:-1]).all())

    def _run(self, batch: Batch) -> bool:
        """Run the rows of a batch. False if a row too far ahead in time stops the run."""
        if not len(batch):
            return True
        self._write(self._engine.read_batch(batch))
        rejected = self._engine.rejected
        self.seen.take_batch(self._within_span(batch))
        self.latest = self._engine.clock if self._engine.clock is not None else self.latest
        self._bars.counted(self._engine.counts.events, self._outputs.written)
        for each in rejected:
            self._refused.take(each)
            if self._strict:
                return False
        rejected.clear()
        return True

    def _write(self, outputs: Iterable[BatchOutputs]) -> None:
        """Write outputs as they come, since a jump of the clock may fire very many timers."""
        for each in outputs:
            self._outputs.write_columns(each)
            if self._is_live:
                self._outputs.flush()

    def _within_span(self, batch: Batch) -> Batch:
        """The rows of a batch that are not refused for their times."""
        if self._span is None:
            return batch
        first, end = batch.times.searchsorted([self._span.low, self._span.high + 1]).tolist()
        return batch.since(first, end)


def _held(file: InputFile, chunk: Chunk, checked: CheckedRows) -> HeldRows:
    """The rows of a checked chunk, to be read later."""
    from ensue.engine.batch.input.batches import TableBatch
    from ensue.events.files.ordered import HeldRows

    batch = checked.batch
    rows = batch.rows if isinstance(batch, TableBatch) else None
    return HeldRows(file, chunk, checked.kept, rows, batch.times)
