"""Files of lines that are each read by one task from begin to end.

That is needed where records of CSV take several lines, and where times have no year, which follows
from the lines before. In come lines as Spark's text reader gives them. They are numbered
(`place_lines`), put in the order of their files by Spark, and read as in one process
(`read_whole_files`): out goes one row a record, an event in bytes or a record with its problems and
the number of its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any, NamedTuple

import pyarrow as pa

from ensue.errors import EventError
from ensue.events.event import Event, Rejected
from ensue.events.mapping import Mapping
from ensue.events.records.text_record import CellReader, CsvRecords, LineReader
from ensue.events.sources import LINES
from ensue.events.types import TypeSystem
from ensue.spark.worker.event_rows import ARRIVAL
from ensue.spark.worker.files.line_chunks import LinesTask
from ensue.spark.worker.files.line_places import BYTE_ORDER_MARK, PLACES_A_FILE, LinePlaces, name_of
from ensue.spark.worker.files.line_records import Batches, check_header, record_batches, types_of

PLACED_DDL = f"`{ARRIVAL}` bigint, rank bigint, value binary"
RECORDS_AT_ONCE = 5000


class _Numbered(NamedTuple):
    """A record with the number of its first line, and its bytes."""

    number: int
    record: Event | Rejected
    raw: bytes


def place_lines(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Lines with their places, and the rank of their file."""
    places = LinePlaces(LinesTask(*given).files)
    for batch in batches:
        arrivals = places.numbered(batch).column(ARRIVAL).combine_chunks()
        ranks = pa.array(arrivals.to_numpy() // PLACES_A_FILE, pa.int64())
        columns = {ARRIVAL: arrivals, "rank": ranks, "value": batch.column("value")}
        yield pa.RecordBatch.from_pydict(columns)


def read_whole_files(given: tuple[Any, ...], batches: Batches) -> Batches:
    """The records of files, whose lines come in order."""
    task = LinesTask(*given)
    types = types_of(task.library)
    lines = (
        (rank, line or b"")
        for batch in batches
        for rank, line in zip(
            batch.column("rank").to_pylist(), batch.column("value").to_pylist(), strict=True
        )
    )
    for rank, of_file in groupby(lines, key=lambda each: each[0]):
        file = task.files[rank]
        read = _lines if task.format == LINES else _records
        records = read(task, types, file, (line for _, line in of_file))
        at = 0
        while part := list(islice(records, RECORDS_AT_ONCE)):
            raws = [each.raw for each in part] if task.keeps_raw else None
            records_here = [each.record for each in part]
            yield from record_batches(_places(file, rank, at, part), records_here, raws)
            at += len(part)


def _places(file: str, rank: int, at: int, part: list[_Numbered]) -> pa.Table:
    """Places of records that come after so many others of their file."""
    first = rank * PLACES_A_FILE + at
    return pa.table(
        {
            ARRIVAL: pa.array(range(first, first + len(part)), pa.int64()),
            "file": pa.array([file] * len(part), pa.string()),
            "start": pa.array([0] * len(part), pa.int64()),
            "line": pa.array([each.number - 1 for each in part], pa.int64()),
        }
    )


def _lines(
    task: LinesTask, types: TypeSystem, file: str, lines: Iterable[bytes]
) -> Iterator[_Numbered]:
    """Lines of JSON that are not blank, with their numbers."""
    mapping = Mapping.from_plain(task.mapping)
    reader = LineReader(types, name_of(file), mapping, label=task.label_of(file))
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if line.strip():
            yield _Numbered(number, reader.read(number, line), line)


def _records(
    task: LinesTask, types: TypeSystem, file: str, lines: Iterable[bytes]
) -> Iterator[_Numbered]:
    """Records of CSV with the numbers of their first lines."""
    delimiter, header = task.cells_of(file)
    records = CsvRecords(_ended(task, file, lines), delimiter)
    if task.has_header:
        # The first line has been checked, and is read so that lines are numbered from it.
        records.header(name_of(file))
    reader = CellReader(
        header,
        types,
        name_of(file),
        Mapping.from_plain(task.mapping),
        label=task.label_of(file),
        nulls=task.nulls,
    )
    found: Event | Rejected
    while True:
        try:
            cells = records.next()
        except EventError as error:
            found = Rejected(records.number, records.raw, error.problems)
            yield _Numbered(records.number, found, records.raw)
            continue
        if cells is None:
            return
        found = reader.read(records.number, cells, records.raw)
        yield _Numbered(records.number, found, records.raw)


def _ended(task: LinesTask, file: str, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends; the first without its byte order mark, and checked."""
    delimiter, header = task.cells_of(file)
    for number, line in enumerate(lines):
        if number == 0:
            line = line.removeprefix(BYTE_ORDER_MARK)
            if task.has_header:
                check_header(line, header, delimiter)
        line += b"\n"
        yield task.cleaned(line) if task.is_log else line
