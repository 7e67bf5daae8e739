"""A stream that comes in chunks of files: its order within a lateness, in columns.

In come chunks as they arrive; out go their refused records, the events that come too late, and the
outputs of the engine `batch` for all events whose order is final. The rules of order are those of
`ensue.engine.timing.ordering`. What waits can be put back into the order as single events, so that
a run goes on with them on any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from ensue.engine.core.numbering import Instants, Rows
from ensue.engine.counts import Counts
from ensue.engine.timing.column_ordering import Arrivals, ColumnOrdering
from ensue.engine.timing.jumps import now_problem, reach_of_now
from ensue.events.cloudevents import encode
from ensue.events.event import Event, Rejected
from ensue.events.files.chunk import Chunk
from ensue.events.files.joining import part_of
from ensue.events.files.text.json_lines import LineChunks
from ensue.events.files.waiting import WaitingRows
from ensue.events.types import TypeSystem

if TYPE_CHECKING:
    from ensue.engine.batch import BatchEngine
    from ensue.engine.batch.input.batches import Batch
    from ensue.engine.batch.input.intake import CheckedRows
    from ensue.engine.batch.output.columns import BatchOutputs
    from ensue.engine.run import Run


class Arrived(NamedTuple):
    """What has arrived with a chunk: its events, and its refused records in their order.

    `ahead` are the events that were refused for their times.
    """

    batch: Batch
    refused: list[Rejected]
    ahead: Rows


class ChunkStream:
    """One stream. `new_engine` makes an engine for a stream that begins anew."""

    def __init__(
        self,
        types: TypeSystem,
        order: ColumnOrdering,
        counts: Counts,
        engine: BatchEngine,
        new_engine: Callable[[], BatchEngine],
    ) -> None:
        self.order = order
        self.engine = engine
        self.late: list[Event] = []
        self._types = types
        self._counts = counts
        self._new_engine = new_engine
        self._waiting = WaitingRows(name for each in types for name in types.attributes(each.name))
        self._coming: list[tuple[Chunk, Instants, Arrivals]] = []

    @classmethod
    def of(cls, run: Run) -> Self:
        """A run of the engine `batch`, which is used again only after `put_back`."""
        from ensue.engine.batch import BatchEngine

        def engine() -> BatchEngine:
            assert isinstance(run._engine, BatchEngine)
            return run._engine

        def begun_anew() -> BatchEngine:
            run._begin_anew()
            return engine()

        order = ColumnOrdering(run._ordering, run.counts.events)
        return cls(run._library.types, order, run.counts, engine(), begun_anew)

    def arrive(self, chunk: Chunk, now: int | None = None) -> Arrived:
        """Take the events of a chunk of a file; `read` returns what follows from them.

        With `now`, events that lie too far ahead of this time of day are refused.
        """
        self._take_back()
        checked = self.engine.check(chunk)
        part = part_of(chunk, _rows_of(checked), checked.kept)
        times = checked.batch.times
        refused = list(checked.rejected)
        every = np.arange(len(times))
        far: list[Rows] = []
        if now is not None:
            is_far = times - now > reach_of_now(self.order.max_jump)
            refused += [
                each.because(now_problem(time, now, self.order.max_jump))
                for each, time in zip(
                    part.original(every[is_far]), times[is_far].tolist(), strict=True
                )
            ]
            far.append(every[is_far])
            every = every[~is_far]
        for each in self.order.arrive(times[every]):
            far.append(every[each.ahead])
            ahead = part.original(every[each.ahead])
            refused += [
                record.because(problem)
                for record, problem in zip(ahead, each.problems, strict=True)
            ]
            taken, late = every[each.taken], every[each.late]
            self._coming.append((part, times, Arrivals(taken, late, each.ahead, [], each.is_new)))
        refused.sort(key=lambda record: record.number)
        return Arrived(checked.batch, refused, np.concatenate(far) if far else every[:0])

    def read(self) -> Iterator[BatchOutputs]:
        """The outputs of what is final by now, as they are made."""
        coming, self._coming = self._coming, []
        for part, times, arrived in coming:
            if arrived.is_new:
                yield from self._read_waiting(None)
                self._counts.begun_anew += 1
                self.engine = self._new_engine()
            late = [each for each in part.singly(arrived.late) if isinstance(each, Event)]
            self._counts.events += len(late)
            self._counts.late += len(late)
            self.late += late
            self._waiting.add(part, arrived.taken, times)
            yield from self._read_waiting(self.order.settled)

    def rest(self) -> Iterator[BatchOutputs]:
        """The outputs of all that still waits, for the end of the stream."""
        self._take_back()
        yield from self._read_waiting(None)

    def put_back(self) -> None:
        """Let what waits wait as single events in the order of the run."""
        chunk = self._waiting.take(None)
        if chunk is not None:
            batch = self.engine.check(chunk).batch
            self.order.hold(batch.events(np.arange(len(batch))))
            # A run counts events as they come, and the engine as they are read.
            self._counts.events += len(batch)

    def _take_back(self) -> None:
        """Let single events that wait in the order of the run wait in columns."""
        events = self.order.release()
        if events:
            self._counts.events -= len(events)
            lines = b"".join(encode(each) + b"\n" for each in events)
            chunk = LineChunks(self._types, "").chunk(lines)
            checked = self.engine.check(chunk)
            part = part_of(chunk, _rows_of(checked), checked.kept)
            self._waiting.add(part, np.arange(len(part)), checked.batch.times)

    def _read_waiting(self, until: int | None) -> Iterator[BatchOutputs]:
        ready = self._waiting.take(until)
        if ready is not None:
            yield from self.engine.read_batch(self.engine.check(ready).batch)


def _rows_of(checked: CheckedRows) -> pa.RecordBatch | None:
    """The columns of checked rows; None if no columns can hold all of them."""
    rows: pa.RecordBatch | None = getattr(checked.batch, "rows", None)
    return rows
