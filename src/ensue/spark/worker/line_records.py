"""Records of lines as rows, with their places, and cells of Spark's CSV reader as events in bytes.

In come records as they were read, or cells; out goes one row a record: the event as bytes with its
time, or the record with its problems. Lines are read by `line_chunks`. Spark's CSV reader is used
only for files with line breaks in cells: it gives the cells of a record, but not the number of its
line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ensue.engine.timing.jumps import jump_problem
from ensue.errors import EventError, UsageError
from ensue.events.cloudevents import encode
from ensue.events.event import Event, Rejected
from ensue.events.mapping import Mapping, Origin
from ensue.events.singly import CellReader, CsvRecords
from ensue.events.types import TypeSystem
from ensue.library import Library
from ensue.spark.worker.event_rows import REACH, read_event, write_event
from ensue.spark.worker.line_places import (
    LINE_DDL,
    LINE_FIELDS,
    LinePlaces,
    first_line,
)

PAYLOAD_DDL = f"{LINE_DDL}, time timestamp, payload binary"
_SCHEMA = pa.schema([*LINE_FIELDS, ("time", pa.timestamp("us", "UTC")), ("payload", pa.binary())])

Batches = Iterator[pa.RecordBatch]
Record = Event | Rejected | None
"""A record, or None for a blank line."""


class CellsTask(NamedTuple):
    """Files of CSV for a worker, as plain data; `columns` and what follows are the mapping."""

    library: bytes
    files: tuple[str, ...]
    header: tuple[str, ...] = ()
    delimiter: str = ","
    columns: tuple[tuple[str, str, str | None], ...] = ()
    type: str | None = None
    timezone: str | None = None


def header_names(line: bytes, delimiter: str = ",") -> tuple[str, ...]:
    """The names in the first line of a file of CSV."""
    text = first_line(line).decode(errors="replace")
    return tuple(name.strip() for name in next(csv.reader([text], delimiter=delimiter), []))


def check_header(line: bytes, names: Sequence[str], delimiter: str) -> None:
    """Raises `UsageError` for a file whose columns are not those of the first file."""
    given = header_names(line, delimiter)
    if given != tuple(names):
        found = ", ".join(f"`{name}`" for name in given)
        raise UsageError(
            f"one of the files names the columns {found}, and the first one"
            f" {', '.join(f'`{name}`' for name in names)}: run files of different columns apart"
        )


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
    """Rows of `cells`, or of a `value` that Spark could not part into cells, as events in bytes.

    A row without an id has the number of its record, which Spark keeps in the order of the file.
    """
    task = CellsTask(*given)
    types = types_of(task.library)
    columns = {name: Origin(path, unit) for name, path, unit in task.columns}
    mapping = Mapping(columns, task.type, task.timezone)
    places = LinePlaces(task.files)
    readers: dict[str, CellReader] = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        found = places.numbered(batch)
        rows = zip(
            found.column("source").to_pylist(),
            found.column("line").to_pylist(),
            batch.column("cells").to_pylist(),
            batch.column("value").to_pylist(),
            strict=True,
        )
        records: list[Record] = []
        for source, number, cells, value in rows:
            reader = readers.get(source)
            if reader is None:
                reader = readers[source] = CellReader(task.header, types, source, mapping)
            records.append(_cells_record(reader, number + 1, cells, value, task.delimiter))
        yield from record_batches(found, records)


def _cells_record(
    reader: CellReader, row: int, cells: Sequence[str | None], value: bytes | None, delimiter: str
) -> Record:
    if value is not None:
        records = CsvRecords(value.splitlines(keepends=True), delimiter)
        try:
            found = records.next()
        except EventError as error:
            return Rejected(0, value, error.problems)
        return None if found is None else reader.read(0, row, found, value)
    texts = [cell or "" for cell in cells]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="").writerow(texts)
    return reader.read(0, row, texts, text.getvalue().encode())


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
