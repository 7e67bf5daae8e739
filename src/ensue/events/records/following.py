"""Records of files that still grow, as they come, and `None` while nothing comes.

In come `InputFile`s; out go blocks of records without end, each to be read as events and refused
records one by one or as chunks, and `None` when nothing has
come for a moment, so that the caller can move a clock or stop. The records that are in the files at
the beginning are merged by time, if each file is in order by itself; later records come in the
order of their arrival.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ensue.errors import EventError, UsageError
from ensue.events.bounds import BOUNDS
from ensue.events.event import Event, Rejected
from ensue.events.last_record import LastRecord
from ensue.events.mapping import Mapping
from ensue.events.mapping.years import Years
from ensue.events.records import overlong
from ensue.events.records.places import (
    InputPlace,
    Merged,
    NoLog,
    Opened,
    Part,
    ReadingLog,
    ReadingStep,
)
from ensue.events.records.text_record import CellReader, CsvRecords, LineReader
from ensue.events.sources import LINES, STDIN, InputFile
from ensue.events.sources.contents import Given, content_of, format_of_ending
from ensue.events.sources.finding import find_files
from ensue.events.sources.growing import (
    Growing,
    GrowingFile,
    growing,
    identity_of,
    path_of,
    wait,
)
from ensue.events.sources.inputs import inputs_of
from ensue.events.types import TypeSystem

if TYPE_CHECKING:
    from ensue.events.files.chunk import Chunk


@dataclass(frozen=True)
class Reading:
    """What all inputs share: types, the mapping, the record that was read last, and options."""

    types: TypeSystem
    mapping: Mapping | None
    last: LastRecord
    given: Given = field(default_factory=Given)


MOMENT_SECONDS = 0.1
SECONDS_BETWEEN_LOOKS = 1.0
"""The seconds between searches for new files in folders and patterns."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Record = Event | Rejected


class _OpenRecord:
    """The lines of an unfinished CSV record; a quoted cell may go on in the next line."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._size = 0
        self._is_in_quotes = False

    def is_whole_with(self, line: bytes) -> bool:
        """Add a line; true if the record ends with it, by its quotes or because it is too long."""
        self.lines.append(line)
        self._size += len(line)
        self._is_in_quotes ^= line.count(b'"') % 2 == 1
        return not self._is_in_quotes or self._size > BOUNDS.record_bytes


@dataclass(frozen=True)
class ComingBlock:
    """Records that have come together, to be read one by one or, where they are many, as chunks.

    `size` is the number of their bytes, with those that wait behind them. One of the two is called,
    once, and read to its end.
    """

    size: int
    records: Callable[[], Iterator[Record]]
    chunks: Callable[[], Iterator[Chunk | Record]]


class FollowedInput:
    """The records of one file or pipe, as its lines come.

    With a `place` the reading goes on there.
    """

    def __init__(
        self,
        given: InputFile,
        types: TypeSystem,
        mapping: Mapping | None,
        last: LastRecord,
        place: InputPlace | None = None,
    ) -> None:
        self._last = last
        self._given = given
        self._types = types
        self._mapping = mapping
        at = None if place is None else (place.id, place.offset)
        self.source: Growing = growing(given, at)
        self._number = 0
        self._header: tuple[str, ...] | None = None
        self._cells: CellReader | None = None
        self._open = _OpenRecord()
        self._lines: LineReader | None = None
        self._begin_file()
        if place is not None:
            self._number = place.line
            self._open.lines.extend(place.open_record)
            if place.header is not None:
                self._cells = self._cell_reader(place.header)
            years = self._years
            if years is not None and place.year is not None:
                years.go_on(place.year, place.latest)

    def _begin_file(self) -> None:
        given = self._given
        self._number = 0
        self._header = given.header
        # The header of a CSV file that was given is not its first line.
        self._cells = None if given.header is None else self._cell_reader(given.header)
        self._open = _OpenRecord()
        self._lines = LineReader(
            self._types, given.name, self._mapping, self._last, label=given.label
        )

    @property
    def _years(self) -> Years | None:
        reader: LineReader | CellReader | None = self._cells
        if self._given.format == "jsonl":
            reader = self._lines
        return None if reader is None else reader.years

    @property
    def place(self) -> InputPlace:
        """Where the reading is; all that was read before has been dealt with."""
        years = self._years
        return InputPlace(
            self.source.path,
            self._given.label,
            self.source.identity,
            self.source.end if isinstance(self.source, GrowingFile) else 0,
            self._number,
            None if self._cells is None else tuple(self._header or ()),
            tuple(self._open.lines),
            *(() if years is None else years.now),
        )

    def blocks(self, log: ReadingLog, number: int) -> Iterator[ComingBlock]:
        """The records that are complete by now; `number` is that of this input in the `log`."""
        while lines := self.source.lines():
            anew, self.source.began_anew = self.source.began_anew, False
            source = self.source
            if isinstance(source, GrowingFile):
                assert source.identity is not None
                check = _check(lines)
                log.note(
                    Part(
                        number,
                        source.identity,
                        source.begin,
                        source.end,
                        check,
                        anew,
                        source.took_rest,
                    )
                )
            if anew:
                self._begin_file()
            yield self._block(lines)
            log.settled()

    def blocks_up_to(self, end: int) -> Iterator[ComingBlock]:
        """The records of the bytes before `end`."""
        assert isinstance(self.source, GrowingFile)
        while lines := self.source.lines_up_to(end):
            yield self._block(lines)

    def again(self, part: Part) -> Iterator[ComingBlock]:
        """The records of a part that was read before. Raises `EventError` if they are gone."""
        assert isinstance(self.source, GrowingFile)
        if part.anew:
            self._begin_file()
        is_there = self.source.place_at(part.id, part.begin)
        lines = self.source.lines_between(part.begin, part.end, part.is_last)
        if not is_there or _check(lines) != part.check:
            self.source.place_at(part.id, part.end)
            raise EventError(
                [
                    f"`{self.source.path}`: the bytes {part.begin:,} to {part.end:,} that had been"
                    " read are gone, and are not read again: outputs that need them may be missing"
                ]
            )
        yield self._block(lines)
        if part.is_last:
            self.source.close()

    @property
    def is_whole(self) -> bool:
        """Whether the end has been reached, unless a file grows."""
        return self.source.has_ended or self._given.is_file

    def rest(self) -> Iterator[Record]:
        """The last record, without a line end or with an open quote."""
        yield from self._read(self.source.rest())
        if self._open.lines:
            yield from self._placed(self._csv_record())

    def _block(self, lines: Sequence[bytes]) -> ComingBlock:
        size = sum(map(len, lines)) + self.source.waiting
        return ComingBlock(size, lambda: self._read(lines), lambda: self._chunks(lines))

    def _chunks(self, lines: Sequence[bytes]) -> Iterator[Chunk | Record]:
        """The records of lines as chunks, but for a record of CSV that is too long."""
        # pyarrow takes a while to import, and few records do not need it.
        from ensue.events.files.joining import with_file
        from ensue.events.files.text.csv_cells import LinesOf
        from ensue.events.files.text.csv_rows import CellChunks
        from ensue.events.files.text.json_lines import LineChunks

        given = self._given
        path = None if given.is_stdin else given.path
        lines = self._cleaned(lines)
        if given.format == "jsonl":
            if self._number == 0:
                lines = [lines[0].removeprefix(_BYTE_ORDER_MARK), *lines[1:]]
            chunks = LineChunks(self._types, given.name, self._mapping, label=given.label)
            chunks.years = self._years
            chunks.lines_before = self._number
            self._number += len(lines)
            yield with_file(chunks.chunk(b"".join(lines)), path)
            return
        while lines:
            if self._cells is not None:
                cells = CellChunks(
                    self._types,
                    given.name,
                    given.delimiter,
                    self._mapping,
                    label=given.label,
                    nulls=given.nulls,
                )
                cells.use_header(list(self._header or ()))
                cells.years = self._years
                cells.lines_before = self._number - len(self._open.lines)
                block = b"".join([*self._open.lines, *lines])
                self._open = _OpenRecord()
                chunk, used = cells.chunk(block, False)
                self._number = cells.lines_before
                yield with_file(chunk, path)
                lines = list(LinesOf(block[used:]))
            # The header, or what is left of a block: a record that is open, or too long.
            lines = yield from self._first_record(lines)

    def _first_record(self, lines: Sequence[bytes]) -> Generator[Record, None, Sequence[bytes]]:
        """The first record, or the header, by itself; the lines behind it are returned."""
        for at, line in enumerate(lines, 1):
            had_header = self._cells is not None
            found = list(self._record(line))
            yield from found
            if found or not had_header:
                return lines[at:]
        return []

    def _cell_reader(self, header: Sequence[str]) -> CellReader:
        given = self._given
        self._header = tuple(header)
        return CellReader(
            header,
            self._types,
            given.name,
            self._mapping,
            self._last,
            label=given.label,
            nulls=given.nulls,
        )

    def _read(self, lines: Sequence[bytes]) -> Iterator[Record]:
        for line in self._cleaned(lines):
            yield from self._record(line)

    def _cleaned(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        clean = self._given.content.clean
        return lines if clean is None else [clean(line) for line in lines]

    def _record(self, line: bytes) -> Iterator[Record]:
        """The record that ends with the next line, if one does."""
        self._number += 1
        if self._number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.strip() or self._open.lines:
            yield from self._placed(
                self._json(line) if self._given.format == "jsonl" else self._csv(line)
            )

    def _placed(self, record: Record | None) -> Iterator[Record]:
        """The record, if there is one; a refused record with the path of its file."""
        self._last.file = file = None if self._given.is_stdin else self._given.path
        if isinstance(record, Rejected):
            record = msgspec.structs.replace(record, file=file)
        if record is not None:
            yield record

    def _json(self, line: bytes) -> Record:
        assert self._lines is not None
        return self._lines.read(self._number, line)

    def _csv(self, line: bytes) -> Record | None:
        return self._csv_record() if self._open.is_whole_with(line) else None

    def _csv_record(self) -> Record | None:
        """The record of the lines so far."""
        raw, self._open = b"".join(self._open.lines), _OpenRecord()
        number = self._number - raw.rstrip(b"\r\n").count(b"\n")
        records = CsvRecords(raw.splitlines(keepends=True), self._given.delimiter)
        if self._cells is None:
            self._cells = self._cell_reader(records.header(self._given.name))
            return None
        try:
            cells = records.next()
        except EventError as error:
            too_long = overlong.refusal(number, raw)
            return too_long or Rejected(number, raw.rstrip(b"\r\n"), error.problems)
        if cells is None:
            return None
        return self._cells.read(number, cells, raw.rstrip(b"\r\n"))


def _check(lines: Sequence[bytes]) -> int:
    return zlib.crc32(b"".join(lines))


class Follower:
    """Follows files: `records` are those that come, and `again` those of steps of before.

    `log` is told each step. `places`, if there are any, are those at which files go on.
    """

    def __init__(
        self,
        paths: Sequence[str],
        inputs: Sequence[InputFile],
        reading: Reading,
        log: ReadingLog | None = None,
        places: Sequence[InputPlace] | None = None,
    ) -> None:
        self._paths = paths
        self._reading = reading
        self._log = log or NoLog()
        self._is_resumed = places is not None
        if places is None:
            self._followed = [self._input(each) for each in inputs]
        else:
            self._followed = [self._input(self._opened(each), each) for each in places]

    @property
    def places(self) -> tuple[InputPlace, ...]:
        return tuple(each.place for each in self._followed)

    def _input(self, given: InputFile, place: InputPlace | None = None) -> FollowedInput:
        reading = self._reading
        return FollowedInput(given, reading.types, reading.mapping, reading.last, place)

    def _opened(self, place: InputPlace) -> InputFile:
        """The file of a place, or what is known of it if there is none at the moment."""
        found = None if place.id is None else path_of(place.id, place.path)
        for path in (found, place.path):
            with suppress(UsageError):
                if path is not None:
                    (each,) = inputs_of([path], self._reading.given)
                    return replace(each, path=place.path, _label=place.label)
        format_ = self._reading.given.format or format_of_ending(place.path) or LINES
        content = content_of(place.path, b"", replace(self._reading.given, format=format_))
        return InputFile(place.path, content, size=0, _label=place.label)

    def again(self, step: ReadingStep) -> Iterator[ComingBlock]:
        """The records of a step of before. Raises `EventError` if its file is gone."""
        match step:
            case Part(input=number):
                yield from self._followed[number].again(step)
            case Merged(ends=ends):
                yield self._merged(ends)
            case Opened(path=path, label=label):
                place = InputPlace(path, label, None)
                self._followed.append(self._input(self._opened(place)))

    def records(
        self,
        *,
        grow: bool,
        stops: Callable[[], bool],
        moment: float = MOMENT_SECONDS,
        between_looks: float = SECONDS_BETWEEN_LOOKS,
    ) -> Iterator[ComingBlock | Record | None]:
        """Records as they come, and `None` while nothing comes, until `stops` returns true.

        With `grow` files are followed for ever, and so are new files of folders and patterns;
        without it, the records end when all inputs have reached their ends. While nothing comes,
        the inputs are asked again after `moment` seconds, and folders and patterns after
        `between_looks`.
        """
        if self._is_resumed and grow:
            self._look_for_new_files(at_start=True)
        if len(self._followed) > 1:
            files = [each.source for each in self._followed]
            if all(isinstance(each, GrowingFile) for each in files):
                sizes = [each.size for each in files if isinstance(each, GrowingFile)]
                ends = dict(enumerate(sizes))
                self._log.note(Merged(ends))
                yield self._merged(ends)
                self._log.settled()
            else:
                yield from _merged(self._followed, None, self._reading.last)
        waited = 0.0
        while not stops():
            came = False
            for number, each in enumerate(self._followed):
                for block in each.blocks(self._log, number):
                    came = True
                    yield block
            if came:
                continue
            if not grow and all(each.is_whole for each in self._followed):
                break
            yield None
            self._log.settled()
            wait([each.source for each in self._followed], moment)
            waited += moment
            if grow and waited >= between_looks:
                waited = 0.0
                self._look_for_new_files()

    def _merged(self, ends: dict[int, int]) -> ComingBlock:
        followed, reading = self._followed, self._reading
        return ComingBlock(
            sum(each.source.waiting for each in followed),
            lambda: _merged(followed, ends, reading.last),
            lambda: _merged_chunks(followed, ends, reading.types),
        )

    def rest(self) -> Iterator[Record]:
        """The last records of all inputs, without a line end or with an open quote."""
        for each in self._followed:
            yield from each.rest()

    def _look_for_new_files(self, at_start: bool = False) -> None:
        sources = [each.source for each in self._followed]
        for each in _new_inputs(self._paths, sources, self._reading.given, at_start):
            self._log.note(Opened(each.path, each.label))
            self._followed.append(self._input(each))


def follow(
    paths: Sequence[str],
    inputs: Sequence[InputFile],
    types: TypeSystem,
    mapping: Mapping | None = None,
    *,
    grow: bool,
    stops: Callable[[], bool],
    last: LastRecord | None = None,
    moment: float = MOMENT_SECONDS,
    between_looks: float = SECONDS_BETWEEN_LOOKS,
) -> Iterator[Record | None]:
    """Records as `Follower` gives them, and at the end those without a line end.

    `last` is kept up to date with the record that was read last.
    """
    follower = Follower(paths, inputs, Reading(types, mapping, last or LastRecord()))
    for coming in follower.records(
        grow=grow, stops=stops, moment=moment, between_looks=between_looks
    ):
        if isinstance(coming, ComingBlock):
            yield from coming.records()
        else:
            yield coming
    yield from follower.rest()


def _merged(
    followed: Sequence[FollowedInput], ends: dict[int, int] | None, last: LastRecord
) -> Iterator[Record]:
    """The records that are in files at the beginning, merged by time; of bytes before `ends`."""

    def timed(number: int, each: FollowedInput) -> Iterator[tuple[int, Record, LastRecord]]:
        latest = -(2**63)
        if ends is None:
            blocks = each.blocks(NoLog(), number)
        else:
            blocks = each.blocks_up_to(ends.get(number, 0))
        for record in chain.from_iterable(block.records() for block in blocks):
            if isinstance(record, Event):
                latest = max(latest, record.time)
            yield latest, record, last.kept()

    coming = [timed(number, each) for number, each in enumerate(followed)]
    for _, record, place in heapq.merge(*coming, key=lambda each: each[0]):
        # The next record of a file has been read before its turn.
        last.file = place.file
        last.read(place.number, place.raw)
        yield record


def _merged_chunks(
    followed: Sequence[FollowedInput], ends: dict[int, int], types: TypeSystem
) -> Iterator[Chunk | Record]:
    """As `_merged`, in chunks."""
    # NumPy and pyarrow take a while to import.
    import numpy as np

    from ensue.events.files.joining import Joined

    declared = {name for each in types for name in types.attributes(each.name)}
    coming = [
        chain.from_iterable(block.chunks() for block in each.blocks_up_to(ends.get(number, 0)))
        for number, each in enumerate(followed)
    ]
    latest = [-(2**63)] * len(followed)
    held: dict[int, _HeldChunk] = {}
    while True:
        for number, each in enumerate(coming):
            while number not in held and (found := next(each, None)) is not None:
                if isinstance(found, Event | Rejected):
                    yield found
                elif len(found):
                    times = np.maximum.accumulate(np.append(latest[number], _times_of(found)))[1:]
                    latest[number] = int(times[-1])
                    held[number] = _HeldChunk(found, times)
        if not held:
            return
        # What comes later in a file is no earlier than the last of its chunk.
        first = min(sorted(held), key=lambda number: int(held[number].times[-1]))
        bound = held[first].times[-1]
        order, keys, begin = [], [], 0
        for number in sorted(held):
            chunk, times, taken = held[number]
            # Of equal times, those of the file that was named first go first.
            end = int(np.searchsorted(times, bound, "right" if number <= first else "left"))
            order.append(np.arange(begin + taken, begin + end))
            keys.append(times[taken:end])
            held[number] = _HeldChunk(chunk, times, max(taken, end))
            begin += len(chunk)
        joined = Joined([held[number].chunk for number in sorted(held)], declared)
        yield joined.chunk(np.concatenate(order)[np.argsort(np.concatenate(keys), kind="stable")])
        held = {number: each for number, each in held.items() if each.taken < len(each.times)}


class _HeldChunk(NamedTuple):
    """A chunk, the latest time up to each of its rows, and how many rows were taken."""

    chunk: Chunk
    times: Any
    taken: int = 0


def _times_of(chunk: Chunk) -> Any:
    """The times of the rows of a chunk; of a row that is no event, one that is before all."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    column = chunk.rows.column(chunk.rows.schema.get_field_index("time")).cast(pa.int64())
    times = np.array(pc.fill_null(column, -(2**63)))
    asked = np.flatnonzero(chunk.doubtful)
    for row, each in zip(asked.tolist(), chunk.singly(asked), strict=True):
        times[row] = each.time if isinstance(each, Event) else -(2**63)
    return times


def _new_inputs(
    paths: Sequence[str], followed: Sequence[Growing], given: Given, at_start: bool
) -> list[InputFile]:
    """The new files of folders and patterns; at the start also those that are named by themselves.

    A followed file under another name, or a copy of it (`app.log.1`, `app.log-20240506.gz`), is not
    new: it has been read already.
    """
    found: list[InputFile] = []
    known = {each.path for each in followed}
    held = {each.identity for each in followed}
    for path in paths:
        if path == STDIN or (Path(path).is_file() and not at_start):
            continue
        try:
            for file in find_files([path]):
                is_old = any(file.startswith(each) for each in known)
                # The format of an empty file is not known yet.
                if is_old or identity_of(file) in held or not Path(file).stat().st_size:
                    continue
                (each,) = inputs_of([file], given)
                if each.is_file and each.format in ("jsonl", "csv"):
                    is_taken = any(Path(path).name == each.name for path in known)
                    found.append(replace(each, _label=file) if is_taken else each)
                    known.add(file)
        except (UsageError, FileNotFoundError):
            # A file that is just being renamed is found the next time.
            continue
    return found
