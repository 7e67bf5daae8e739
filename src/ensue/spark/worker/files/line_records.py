"""Records of lines as rows, with their places: events in bytes, and records with their problems.

In come records as they were read; out goes one row a record: the event as bytes with its time, or
the record with its problems. Lines are read by `line_chunks`, and files whose records take several
lines by `whole_files`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from ensue.engine.timing.jumps import far_problem
from ensue.errors import UsageError
from ensue.events.event import Event, Rejected
from ensue.events.records.text_record import CsvRecords
from ensue.events.sources.contents import guess_delimiter
from ensue.events.types import TypeSystem
from ensue.library import Library
from ensue.spark.worker.event_rows import BEGIN, REACH, write_event
from ensue.spark.worker.files.line_places import (
    LINE_DDL,
    LINE_FIELDS,
    first_line,
)

PAYLOAD_DDL = f"{LINE_DDL}, type string, time timestamp, payload binary"
_SCHEMA = pa.schema(
    [
        *LINE_FIELDS,
        ("type", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("payload", pa.binary()),
    ]
)

Batches = Iterator[pa.RecordBatch]
Record = Event | Rejected | None
"""A record, or None for a blank line."""


def header_names(line: bytes, delimiter: str, name: str) -> tuple[str, ...]:
    """The names in the first line of a file of CSV. Raises `UsageError` if it has none."""
    return tuple(CsvRecords([first_line(line) + b"\n"], delimiter).header(name))


def check_header(line: bytes, names: Sequence[str], delimiter: str) -> None:
    """Raises `UsageError` for a file whose columns are not those of the first file."""
    given = header_names(line, delimiter, "one of the files")
    if given != tuple(names):
        other = guess_delimiter("one of the files", first_line(line))
        if header_names(line, other, "one of the files") == tuple(names):
            raise UsageError(
                f"one of the files separates its cells by {other!r}, and the first one by"
                f" {delimiter!r}: of files on other machines, or very many, Spark reads those of"
                " one delimiter at a time, so run them apart"
            )
        found = ", ".join(f"`{name}`" for name in given)
        raise UsageError(
            f"one of the files names the columns {found}, and the first one"
            f" {', '.join(f'`{name}`' for name in names)}: of files on other machines, or very"
            " many, Spark reads those of the same columns at a time, so run them apart"
        )


def record_batches(
    places: pa.Table, records: Sequence[Record], raws: Sequence[bytes] | None = None
) -> list[pa.RecordBatch]:
    """Records with their places, without blank lines; events as well with `raws`, if given."""
    kept = [number for number, record in enumerate(records) if record is not None]
    held = [records[number] for number in kept]
    events = [each if isinstance(each, Event) else None for each in held]
    rejected = [each if isinstance(each, Rejected) else None for each in held]
    taken = places.take(pa.array(kept, pa.int64()))
    columns = {name: taken.column(name) for name in taken.schema.names}
    columns |= {
        "raw": pa.array(
            [
                (raws[at] if raws else None) if each is None else bytes_of(each.raw)
                for at, each in zip(kept, rejected, strict=True)
            ],
            pa.binary(),
        ),
        "problems": pa.array([None if each is None else list(each.problems) for each in rejected]),
        "type": pa.array([None if each is None else each.type for each in events], pa.string()),
        "time": pa.array([None if each is None else each.time for each in events], pa.int64()),
        "payload": pa.array([None if each is None else write_event(each) for each in events]),
    }
    arrays = [columns[field.name].cast(field.type) for field in _SCHEMA]
    batches: list[pa.RecordBatch] = (
        pa.Table.from_arrays(arrays, schema=_SCHEMA).combine_chunks().to_batches()
    )
    return batches


def bytes_of(raw: bytes | str) -> bytes:
    return raw if isinstance(raw, bytes) else raw.encode()


@lru_cache(maxsize=16)
def types_of(library: bytes) -> TypeSystem:
    """The types of a library that has come as tables."""
    return Library.from_tables(library).checked.types


def refuse_ahead(given: tuple[float], batches: Batches) -> Batches:
    """Records; those whose times lie out of the reach of the clock are rejected."""
    (allowed,) = given
    for batch in batches:
        kept = batch.select(_SCHEMA.names)
        reach = (batch.column(REACH)[0].as_py() if batch.num_rows else None) or 0
        begin = (batch.column(BEGIN)[0].as_py() if batch.num_rows else None) or 0
        times = batch.column("time").cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        good = batch.column("problems").is_null().to_numpy(zero_copy_only=False)
        far = np.flatnonzero(good & ((times > reach) | (times < begin)))
        if not len(far):
            yield kept
            continue
        rows = kept.to_pylist()
        for number in far.tolist():
            problem = far_problem(int(times[number]), begin, reach, allowed)
            rows[number] |= {"payload": None, "time": None, "type": None, "problems": [problem]}
        yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)
