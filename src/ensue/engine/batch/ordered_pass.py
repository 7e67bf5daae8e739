"""One batch through every correlation of a library, each after the correlations that feed it.

In come rows in the order of their times, and the time that the clock has reached; out go outputs,
each with its place in the order of the stream. Groups read first, for no rule of a group feeds
another. A rule that has to leave its group, or to leave columns, goes on from the same row
(`arrangement`). The engine cuts a stream into batches, and `output.columns` puts outputs into their
order.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ensue.engine.batch.arrangement import Arrangement
from ensue.engine.batch.input.batches import Batch
from ensue.engine.batch.input.intake import EventBatch
from ensue.engine.batch.input.matching import Segment
from ensue.engine.batch.many.group import BatchGroup, GroupMember
from ensue.engine.batch.output.columns import PartedOutputs, PositionedOutputs, SourceOutputs
from ensue.engine.batch.output.order import (
    OutputPlaces,
    Positions,
    Roots,
    depth_of,
    event_positions,
    output_positions,
    position_width,
    reading_order,
)
from ensue.engine.batch.related.correlation import LeavesColumnsError, RelatedCorrelation
from ensue.engine.batch.single.by_event import EventCorrelation
from ensue.engine.batch.single.correlation import ColumnCorrelation
from ensue.engine.counts import Counts
from ensue.engine.sizes import sizes
from ensue.lang.checked import CheckedLibrary

_NOWHERE = OutputPlaces(np.empty(0, np.int64), np.empty(0, np.int64))


class OrderedPass:
    """The correlations of one library, and the order in which they read a batch.

    `is_linked` says whether any correlation feeds another.
    """

    def __init__(self, library: CheckedLibrary, counts: Counts) -> None:
        self.is_linked = any(library.feeds.values())
        self._types = library.types
        self._feeds = library.feeds
        self._internal = {each.name for each in library.correlations if each.role == "internal"}
        self._depth = depth_of(library.feeds) if self.is_linked else 1
        self.arranged = Arrangement(library, self._depth, counts)
        names = [correlation.name for correlation in library.correlations]
        self._numbers = {name: number for number, name in enumerate(names)}
        self._reading_order = reading_order(names, library.feeds)

    @property
    def most_rows(self) -> int | None:
        """How many rows a pass may have; None if that does not matter.

        In a chain of rules a row brings about an output of each, whose position has numbers for
        each rule before it.
        """
        if not self.is_linked:
            return None
        return max(1, sizes().positions_at_once // (self._depth * position_width(self._depth)))

    def run(self, batch: Batch, first: int, clock: int | None) -> list[PositionedOutputs]:
        """The outputs of a batch, whose first row has the number `first` in the stream."""
        rows = _BatchRows(batch, first, clock, self._depth, self.is_linked)
        outputs: list[PositionedOutputs] = []
        rows_read: dict[str, int] = {}
        for group in list(self.arranged.groups):
            if len(batch) or group.has_timers:
                outputs += self._read_in_group(group, rows, rows_read)
        fed: dict[str, list[Segment]] = {name: [] for name in self._reading_order}
        for name in self._reading_order:
            if isinstance(self.arranged.running[name], GroupMember):
                continue
            number = self._numbers[name]
            parts = self._read_alone(name, rows, rows_read.get(name, 0), fed[name])
            # What it has put out in another form that it has left in this batch has places.
            is_only = len(self._numbers) == 1 and name not in rows_read and len(parts) == 1
            for made, read in parts:
                if not len(made):
                    continue
                if not self.is_linked:
                    if name not in self._internal:
                        outputs.append((made, _NOWHERE if is_only else rows.places(read, number)))
                    continue
                positions = output_positions(read, number)
                if name not in self._internal:
                    outputs.append((made, positions))
                segment = Segment(EventBatch(made.events(), self._types), positions, name)
                for reader in self._feeds.get(name, ()):
                    fed[reader].append(segment)
        for group in [each for each in self.arranged.groups if not each.has_room]:
            self.arranged.dissolve(group)
        return outputs

    def _read_alone(
        self, name: str, rows: _BatchRows, done: int, fed: list[Segment]
    ) -> list[tuple[SourceOutputs, Positions]]:
        """The outputs of a rule alone, and the positions of the readings behind them.

        The rule has read the first `done` rows already, in a group that it has left. If it leaves
        columns, there are two parts: up to where it leaves them, and from there on.
        """
        running = self.arranged.running[name]
        assert not isinstance(running, GroupMember)
        try:
            found = [_read(running, rows, done, fed)]
        except LeavesColumnsError as error:
            return [_read(self.arranged.leave_columns(name, str(error)), rows, done, fed)]
        if isinstance(running, ColumnCorrelation) and running.stopped is not None:
            by_event = self.arranged.leave_columns(name, running.why_outgrown)
            if self.is_linked:
                every = [rows.segment(True, done), *fed]
                segments = [each.since(running.stopped) for each in every]
            else:
                segments = [rows.segment(True, int(running.stopped[0]))]
            found.append(by_event.read(segments, rows.clock, is_counted=True))
        return found

    def _read_in_group(
        self, group: BatchGroup, rows: _BatchRows, rows_read: dict[str, int]
    ) -> list[PositionedOutputs]:
        """The outputs of a group. `rows_read` gets for each rule that leaves it how far it came."""
        found: list[tuple[PartedOutputs, Roots | int]] = []
        done = 0
        while True:
            made, roots, read = group.read(rows.segment(False, done), rows.clock)
            if len(made):
                found.append((made, done if roots is None else roots.later(done)))
            if not group.leaving:
                break
            done += read
            for name in group.leaving:
                self.arranged.release(group, name, "its table kept growing")
                rows_read[name] = done
            if not group.members:
                break
        if not self.is_linked and len(group.members) == len(self.arranged.running):
            # No other rule puts out anything, so these stand in the order of all already.
            return [(made, _NOWHERE) for made, _ in found]
        return [(made, self._places_in_group(group, made, of, rows)) for made, of in found]

    def _places_in_group(
        self, group: BatchGroup, made: PartedOutputs, roots: Roots | int, rows: _BatchRows
    ) -> Positions | OutputPlaces:
        """The places of outputs by their roots, or by their rows behind so many other rows."""
        if self.is_linked:
            positions = rows.segment(False).positions
            numbers = group.numbers[made.rules]
            if isinstance(roots, int):
                return output_positions(positions[made.at + roots], numbers)
            return output_positions(roots.positions(positions), numbers)
        if isinstance(roots, int):
            return OutputPlaces.of_rows(made.at + roots, group.numbers[made.rules])
        return OutputPlaces.of_roots(roots, rows.batch.times)


def _read(
    running: ColumnCorrelation | RelatedCorrelation | EventCorrelation,
    rows: _BatchRows,
    done: int,
    fed: list[Segment],
) -> tuple[SourceOutputs, Positions]:
    by_event = isinstance(running, EventCorrelation)
    segments = [rows.segment(by_event, done), *fed] if len(rows.batch) else fed
    if isinstance(running, ColumnCorrelation):
        return running.read(segments)
    return running.read(segments, rows.clock)


class _BatchRows:
    """The rows of a batch with their positions, in the form that a correlation needs.

    Where no correlation feeds another, the number of a row in the batch is its position, unless
    timers come in between. `clock` is the time that is reached by the end of the batch.
    """

    def __init__(
        self, batch: Batch, first: int, clock: int | None, depth: int, is_linked: bool
    ) -> None:
        self.batch = batch
        self.clock = clock
        self._first = first
        self._depth = depth
        self._is_linked = is_linked

    @cached_property
    def _in_stream(self) -> Segment:
        return Segment(self.batch, event_positions(self.batch.times, self._first, self._depth))

    @cached_property
    def _by_number(self) -> Segment:
        return Segment(self.batch, np.arange(len(self.batch)).reshape(-1, 1))

    def segment(self, by_event: bool, done: int = 0) -> Segment:
        """The rows after the first `done`, for a rule that runs event by event or in columns."""
        whole = self._in_stream if by_event or self._is_linked else self._by_number
        return Segment(self.batch.since(done), whole.positions[done:]) if done else whole

    def places(self, read: Positions, number: int) -> OutputPlaces:
        """The places of outputs, from the positions of readings; no correlation feeds another."""
        if read.shape[1] == 1:
            return OutputPlaces.of_rows(read[:, 0], number)
        return OutputPlaces.of_positions(read, number, self._first, self.batch.times)
