"""Lines of JSON and CSV as events in bytes, each read as a run in one process reads it.

In come lines with their places, or cells of Spark's CSV reader; out goes one row a record: the
event as bytes with its time, or the record with its problems. CSV whose attributes have columns is
read by `csv_rows` instead. Spark's CSV reader is used only for files with line breaks in cells: it
gives the cells of a record, but not the number of its line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ensue.engine.jumps import jump_problem
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import decode, encode, text_problem
from ensue.events.columns import Layout, RowReader, convert_text
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.reading import read_events
from ensue.events.types import TypeSystem
from ensue.library import Library
from ensue.spark.worker.event_rows import REACH, read_event, write_event
from ensue.spark.worker.line_places import (
    BYTE_ORDER_MARK,
    LINE_DDL,
    LINE_FIELDS,
    LinePlaces,
    first_line,
    is_first,
)

PAYLOAD_DDL = f"{LINE_DDL}, time timestamp, payload binary"
OPEN_QUOTE = "a quote is not closed in its line"
"""The problem of a line of CSV that is only a part of its record."""

_CELL = rb'(?:"[^"\r]*"|[^",\r]*)'
_has_plain_cells = re.compile(rb"%s(?:,%s)*\r?" % (_CELL, _CELL)).fullmatch
_SCHEMA = pa.schema([*LINE_FIELDS, ("time", pa.timestamp("us", "UTC")), ("payload", pa.binary())])

Batches = Iterator[pa.RecordBatch]
Record = Event | Rejected | None
"""A record, or None for a blank line."""


class LineTask(NamedTuple):
    """Files for a worker, as plain data; `header` and `names` are for CSV only."""

    library: bytes
    files: tuple[str, ...]
    header: bytes = b""
    names: tuple[str, ...] = ()


def read_json_lines(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Lines of JSON as events in bytes, or with their problems."""
    task = LineTask(*given)
    types = types_of(task.library)
    places = LinePlaces(task.files)
    for batch in batches:
        if not batch.num_rows:
            continue
        found = places.numbered(batch)
        lines = [line or b"" for line in batch.column("value").to_pylist()]
        for number in np.flatnonzero(is_first(found)).tolist():
            lines[number] = lines[number].removeprefix(BYTE_ORDER_MARK)
        yield from record_batches(found, [_json_record(line, types) for line in lines])


def _json_record(line: bytes, types: TypeSystem) -> Record:
    record = line.strip()
    if not record:
        return None
    try:
        return conform(decode(record), types)
    except EventError as error:
        return Rejected(0, line.rstrip(b"\r"), error.problems)


def read_csv_payloads(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Lines of CSV as events in bytes, or with their problems."""
    task = LineTask(*given)
    types = types_of(task.library)
    places = LinePlaces(task.files)
    for batch in batches:
        if not batch.num_rows:
            continue
        found = places.numbered(batch)
        lines = [line or b"" for line in batch.column("value").to_pylist()]
        headers = is_first(found)
        for number in np.flatnonzero(headers).tolist():
            check_header(lines[number], task.names)
        rows = np.flatnonzero(~headers)
        found, lines = found.take(pa.array(rows)), [lines[number] for number in rows.tolist()]
        sources = found.column("source").to_pylist()
        yield from record_batches(found, csv_records(lines, sources, task, types))


class CsvFile(Protocol):
    """What is known of files of CSV: their first line, and its names."""

    @property
    def header(self) -> bytes: ...

    @property
    def names(self) -> tuple[str, ...]: ...


def header_names(line: bytes) -> tuple[str, ...]:
    """The names in the first line of a file of CSV."""
    text = first_line(line).decode(errors="replace")
    return tuple(name.strip() for name in next(csv.reader([text]), []))


def check_header(line: bytes, names: Sequence[str]) -> None:
    """Raises `UsageError` for a file whose columns are not those of the first file."""
    if header_names(line) != tuple(names):
        found = ", ".join(f"`{name}`" for name in header_names(line))
        raise UsageError(
            f"one of the files names the columns {found}, and the first one"
            f" {', '.join(f'`{name}`' for name in names)}: run files of different columns apart"
        )


def csv_records(
    lines: Sequence[bytes], sources: Sequence[str], task: CsvFile, types: TypeSystem
) -> list[Record]:
    """The records in lines of CSV, none of which is a header."""
    records: list[Record] = [None] * len(lines)
    together: dict[str, list[int]] = {}
    for number, (line, source) in enumerate(zip(lines, sources, strict=True)):
        # A line of plain cells that is not blank is one record, whatever stands in its cells.
        if _has_plain_cells(line) and line.strip():
            together.setdefault(source, []).append(number)
        elif line.count(b'"') % 2:
            records[number] = Rejected(0, line, (OPEN_QUOTE,))
        else:
            for record in _read_csv([line], source, task, types):
                records[number] = record
    for source, numbers in together.items():
        read = _read_csv([lines[number] for number in numbers], source, task, types)
        for number, record in zip(numbers, read, strict=True):
            records[number] = record
    return records


def _read_csv(
    lines: Sequence[bytes], source: str, task: CsvFile, types: TypeSystem
) -> Iterator[Event | Rejected]:
    file = io.BytesIO(b"\n".join([task.header, *lines, b""]))
    id_place = task.names.index("id")
    for number, record in enumerate(read_events(file, types, "csv", name=source)):
        if isinstance(record, Event) and record.id == str(number + 1):
            line = lines[number]
            if not next(csv.reader([line.decode()]))[id_place]:
                # In one process the number of a row stands in for its id.
                yield Rejected(0, line.rstrip(b"\r"), (text_problem("id", None),))
                continue
        yield record


def record_batches(places: pa.Table, records: Sequence[Record]) -> list[pa.RecordBatch]:
    """Records with their places, without blank lines."""
    kept = [number for number, record in enumerate(records) if record is not None]
    held = [records[number] for number in kept]
    events = [each if isinstance(each, Event) else None for each in held]
    rejected = [each if isinstance(each, Rejected) else None for each in held]
    columns = {
        name: places.column(name).take(pa.array(kept, pa.int64())) for name in places.schema.names
    }
    columns |= {
        "raw": pa.array([None if each is None else _bytes(each.raw) for each in rejected]),
        "problems": pa.array([None if each is None else list(each.problems) for each in rejected]),
        "time": pa.array([None if each is None else each.time for each in events], pa.int64()),
        "payload": pa.array([None if each is None else write_event(each) for each in events]),
    }
    arrays = [columns[field.name].cast(field.type) for field in _SCHEMA]
    batches: list[pa.RecordBatch] = (
        pa.Table.from_arrays(arrays, schema=_SCHEMA).combine_chunks().to_batches()
    )
    return batches


def _bytes(raw: bytes | str) -> bytes:
    return raw if isinstance(raw, bytes) else raw.encode()


@lru_cache(maxsize=16)
def types_of(library: bytes) -> TypeSystem:
    """The types of a library that has come as tables."""
    return Library.from_tables(library).checked.types


# --- cells of Spark's CSV reader ----------------------------------------------------------------


def read_csv_cells(given: tuple[Any, ...], batches: Batches) -> Batches:
    """Rows of `cells`, or of a `value` that Spark could not part into cells, as events in bytes."""
    task = LineTask(*given)
    types = types_of(task.library)
    layout = Layout.of(task.names, "the file")
    places = LinePlaces(task.files)
    for batch in batches:
        if not batch.num_rows:
            continue
        found = places.numbered(batch)
        rows = zip(
            found.column("source").to_pylist(),
            batch.column("cells").to_pylist(),
            batch.column("value").to_pylist(),
            strict=True,
        )
        records = [
            _cells_record(cells, RowReader(layout, types, source, convert_text))
            if value is None
            else csv_records([value], [source], task, types)[0]
            for source, cells, value in rows
        ]
        yield from record_batches(found, records)


def _cells_record(cells: Sequence[str | None], reader: RowReader) -> Event | Rejected:
    cells = [cell or None for cell in cells]
    try:
        if cells[reader.layout.context["id"]] is None:
            raise EventError([text_problem("id", None)])
        return reader.event(0, cells)
    except EventError as error:
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow([cell or "" for cell in cells])
        return Rejected(0, text.getvalue().encode(), error.problems)


def refuse_ahead(given: tuple[bytes, float], batches: Batches) -> Batches:
    """Records, of which those that lie beyond the reach of the clock are rejected."""
    library, allowed = given
    types = types_of(library)
    for batch in batches:
        kept = batch.select(_SCHEMA.names)
        reach = (batch.column(REACH)[0].as_py() if batch.num_rows else None) or 0
        times = batch.column("time").cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        good = batch.column("problems").is_null().to_numpy(zero_copy_only=False)
        ahead = np.flatnonzero(good & (times > reach))
        if not len(ahead):
            yield kept
            continue
        rows = kept.to_pylist()
        for number in ahead.tolist():
            row = rows[number]
            event = read_event(row["payload"], types)
            row |= {"raw": encode(event), "payload": None, "time": None}
            row["problems"] = [jump_problem(event.time, reach, allowed)]
        yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)
