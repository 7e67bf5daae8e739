"""Rows to events in Python, on the map side: for what SQL cannot say exactly.

In come rows of any columns, or outputs of an earlier stage; out go, for one group, the events that
one of its rules wants (`wanting`), each with its position and the bucket of its key, once for each
bucket that reads it. An event travels as bytes of msgpack. The same reading also tells which rows
are no events, and why, and the times of those that are.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from ensue.events.arrow import read_batches
from ensue.events.cloudevents import decode, encode, text_problem
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.types import TypeSystem
from ensue.spark.worker import positions
from ensue.spark.worker.routing import Wanting

ARRIVAL = "ensue_arrival"
"""The column that keeps the order in which rows with equal times were given."""
ROW = "row"
"""The column that has all others of a row as its fields."""
DEFAULT_SOURCE = "spark"
"""The source of events that say none."""

EVENT_SCHEMA = pa.schema(
    [
        ("position", pa.binary()),
        ("author", pa.string()),
        ("bucket", pa.int64()),
        ("mask", pa.int64()),
        ("payload", pa.binary()),
    ]
)
EVENT_DDL = "position binary, author string, bucket bigint, mask bigint, payload binary"
OUTPUT_DDL = "position binary, author string, payload binary"

_write_event = msgspec.msgpack.Encoder().encode
_read_event = msgspec.msgpack.Decoder(Event).decode
_MSGPACK, _JSON = b"m", b"j"


def write_event(event: Event) -> bytes:
    try:
        return _MSGPACK + _write_event(event)
    except (OverflowError, ValueError):
        # An integer of more than 64 bits in data that no type declares.
        return _JSON + encode(event)


def read_event(payload: bytes, types: TypeSystem) -> Event:
    if payload[:1] == _MSGPACK:
        return _read_event(payload[1:])
    return conform(decode(payload[1:]), types)


def event_rows(
    records: Iterator[tuple[bytes, str | None, Event]], wanting: Wanting, rows_at_once: int = 8192
) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[bytes, str | None, int, int, bytes]] = []
    for position, author, event in records:
        buckets = wanting.buckets(event)
        if buckets:
            payload = write_event(event)
            rows += [(position, author, *each, payload) for each in buckets.items()]
        if len(rows) >= rows_at_once:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[bytes, str | None, int, int, bytes]]) -> pa.RecordBatch:
    columns = [
        pa.array(list(column), field.type)
        for column, field in zip(zip(*rows, strict=True), EVENT_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=EVENT_SCHEMA)


Record = tuple[int, Event | Rejected]


def read_rows(
    batches: Iterator[pa.RecordBatch], types: TypeSystem, with_arrival: bool = True
) -> Iterator[Record]:
    """Each row (`ROW`) as an event or as what is wrong with it, with its arrival."""
    done = 0
    for given in batches:
        arrivals = given.column(ARRIVAL).to_pylist() if with_arrival else [0] * given.num_rows
        batch = pa.RecordBatch.from_struct_array(given.column(ROW))
        ids = batch.column(batch.schema.get_field_index("id"))
        records = read_batches(
            [batch], batch.schema, types, DEFAULT_SOURCE, where="the DataFrame", rows_before=done
        )
        for arrival, record, identity in zip(arrivals, records, ids, strict=True):
            if not identity.is_valid:
                # Elsewhere the number of its row is the id, but rows of a DataFrame have none.
                problem = text_problem("id", None)
                if isinstance(record, Rejected):
                    record = Rejected(0, record.raw, (problem, *record.problems))
                else:
                    record = Rejected(0, encode(record), (problem,))
            yield arrival, record
        done += batch.num_rows


def positioned(
    records: Iterator[Record],
) -> Iterator[tuple[bytes, str | None, Event]]:
    for arrival, record in records:
        if isinstance(record, Event):
            yield positions.event_position(record.time, arrival), None, record
