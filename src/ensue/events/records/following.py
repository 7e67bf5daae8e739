"""Records of files that still grow, as they come, and `None` while nothing comes.

In come `InputFile`s; out go events and refused records without end, and `None` when nothing has
come for a moment, so that the caller can move a clock or stop. The records that are in the files at
the beginning are merged by time, if each file is in order by itself; later records come in the
order of their arrival.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from ensue.errors import EventError, UsageError
from ensue.events.bounds import BOUNDS
from ensue.events.event import Event, Rejected
from ensue.events.last_record import LastRecord
from ensue.events.mapping import Mapping
from ensue.events.records import overlong
from ensue.events.records.text_record import CellReader, CsvRecords, LineReader
from ensue.events.sources import STDIN, InputFile, open_inputs, zeek
from ensue.events.sources.finding import find_files
from ensue.events.sources.growing import Growing, growing, identity_of, wait
from ensue.events.types import TypeSystem

MOMENT_SECONDS = 0.1
SECONDS_BETWEEN_LOOKS = 1.0
"""The seconds between searches for new files in folders and patterns."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Record = Event | Rejected


class Rows:
    """Counts records over all files; the number is the id of a record without one."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> int:
        self.count += 1
        return self.count


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


class FollowedInput:
    """The records of one file or pipe, as its lines come."""

    def __init__(
        self,
        given: InputFile,
        types: TypeSystem,
        mapping: Mapping | None,
        rows: Rows,
        last: LastRecord,
    ) -> None:
        self._last = last
        self.source: Growing = growing(given)
        self._given = given
        self._types = types
        self._mapping = mapping
        self._rows = rows
        self._number = 0
        self._cells = self._first_cells()
        self._open = _OpenRecord()
        self._lines = LineReader(types, given.name, mapping, last)

    def records(self) -> Iterator[Record]:
        """The records that are complete by now."""
        while lines := self.source.lines():
            if self.source.began_anew:
                self._number, self._cells, self._open = 0, self._first_cells(), _OpenRecord()
                self.source.began_anew = False
            yield from self._read(lines)

    @property
    def is_whole(self) -> bool:
        """Whether the end has been reached, unless a file grows."""
        return self.source.has_ended or self._given.is_file

    def rest(self) -> Iterator[Record]:
        """The last record, without a line end or with an open quote."""
        yield from self._read(self.source.rest())
        if self._open.lines:
            yield from self._placed(self._csv_record())

    def _first_cells(self) -> CellReader | None:
        """The reader of a CSV file whose header was given, and is not its first line."""
        header = self._given.header
        return None if header is None else self._cell_reader(header)

    def _cell_reader(self, header: Sequence[str]) -> CellReader:
        return CellReader(header, self._types, self._given.name, self._mapping, self._last)

    def _read(self, lines: Sequence[bytes]) -> Iterator[Record]:
        for line in lines:
            line = zeek.cleaned(line) if self._given.is_zeek else line
            self._number += 1
            if self._number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if not line.strip() and not self._open.lines:
                continue
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
        return self._lines.read(self._number, self._rows.next(), line)

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
            self._rows.next()
            too_long = overlong.refusal(number, raw)
            return too_long or Rejected(number, raw.rstrip(b"\r\n"), error.problems)
        if cells is None:
            return None
        return self._cells.read(number, self._rows.next(), cells, raw.rstrip(b"\r\n"))


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
    """Records as they come, and `None` while nothing comes, until `stops` returns true.

    With `grow` files are followed for ever, and so are new files of folders and patterns; without
    it, the records end when all inputs have reached their ends. `last` is kept up to date with the
    record that was read last. While nothing comes, the inputs are asked again after `moment`
    seconds, and folders and patterns after `between_looks`.
    """
    rows = Rows()
    last = last or LastRecord()
    followed = [FollowedInput(each, types, mapping, rows, last) for each in inputs]
    if len(followed) > 1:
        yield from _merged(followed, last)
    waited = 0.0
    while not stops():
        came = False
        for each in followed:
            for record in each.records():
                came = True
                yield record
        if came:
            continue
        if not grow and all(each.is_whole for each in followed):
            break
        yield None
        wait([each.source for each in followed], moment)
        waited += moment
        if grow and waited >= between_looks:
            waited = 0.0
            new = _new_inputs(paths, [each.source for each in followed])
            followed += [FollowedInput(each, types, mapping, rows, last) for each in new]
    for each in followed:
        yield from each.rest()


def _merged(followed: Sequence[FollowedInput], last: LastRecord) -> Iterator[Record]:
    """The records that are in files at the beginning, merged by time."""

    def timed(each: FollowedInput) -> Iterator[tuple[int, Record, LastRecord]]:
        latest = -(2**63)
        for record in each.records():
            if isinstance(record, Event):
                latest = max(latest, record.time)
            yield latest, record, last.kept()

    for _, record, place in heapq.merge(*map(timed, followed), key=lambda each: each[0]):
        # The next record of a file has been read before its turn.
        last.file = place.file
        last.read(place.number, place.raw)
        yield record


def _new_inputs(paths: Sequence[str], followed: Sequence[Growing]) -> list[InputFile]:
    """The new files of folders and patterns.

    A followed file under another name, or a copy of it (`app.log.1`, `app.log-20240506.gz`), is not
    new: it has been read already.
    """
    found: list[InputFile] = []
    known = {each.path for each in followed}
    held = {each.identity for each in followed}
    for path in paths:
        if path == STDIN or Path(path).is_file():
            continue
        try:
            for file in find_files([path]):
                is_old = any(file.startswith(each) for each in known)
                # The format of an empty file is not known yet.
                if is_old or identity_of(file) in held or not Path(file).stat().st_size:
                    continue
                (each,) = open_inputs([file])
                found += [each] if each.is_file and each.format in ("jsonl", "csv") else []
        except (UsageError, FileNotFoundError):
            # A file that is just being renamed is found the next time.
            continue
    return found
