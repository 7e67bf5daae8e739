"""Rows to events in Python, before the shuffle: for rows that SQL cannot read exactly.

In come rows of any columns, or outputs of an earlier stage; out go, for one group of rules, the
events that a rule wants (`routing`), each with its position and the bucket of its key, once for
each bucket that reads it. An event travels as bytes of msgpack. Rows that are no events come out as
`Rejected`, with all their problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec
import pyarrow as pa

from ensue.errors import JobError
from ensue.events.arrow import read_batches
from ensue.events.cloudevents import decode, encode, text_problem
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.mapping import Mapping, Origin
from ensue.events.types import TypeSystem
from ensue.spark.worker import positions
from ensue.spark.worker.routing import EventRouter

BEGIN = "ensue_begin"
REACH = "ensue_reach"
"""The column that has in every row the time of the last event to which the clock may jump."""
ARRIVAL = "ensue_arrival"
"""The column that keeps the order in which rows with equal times were given."""
ROW = "row"
"""The column with all other columns of a row as its fields."""
IN_FILE = "in_file"
"""The column with a row of a file, before columns were renamed, as its fields."""
OWN_ID = "ensue_own_id"
"""The column with the ids of a file, where numbers of rows stand in for ids that are missing."""
DEFAULT_SOURCE = "spark"
"""The `source` of events without one."""

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
REJECTED_DDL = "row string, problems array<string>"

Times = tuple[tuple[tuple[str, str], ...], str | None]
"""Units of times that are numbers, by the names of their columns, and the zone of times without an
offset: what a worker needs of the mapping of a user."""
NO_TIMES: Times = ((), None)

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
    records: Iterator[tuple[bytes, str | None, Event]],
    router: EventRouter,
    rows_at_once: int = 8192,
) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[bytes, str | None, int, int, bytes]] = []
    for position, author, event in records:
        buckets = router.buckets(event, author)
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


@lru_cache(maxsize=16)
def _mapping(times: Times) -> Mapping | None:
    units, timezone = times
    if not units and timezone is None:
        return None
    return Mapping({name: Origin(name, unit) for name, unit in units}, timezone=timezone)


def read_rows(
    batches: Iterator[pa.RecordBatch],
    types: TypeSystem,
    times: Times = NO_TIMES,
    with_arrival: bool = True,
) -> Iterator[Record]:
    """Each row (`ROW`) as an event or as `Rejected`, with its arrival."""
    done = 0
    mapping = _mapping(times)
    for given in batches:
        arrivals = given.column(ARRIVAL).to_pylist() if with_arrival else [0] * given.num_rows
        batch = pa.RecordBatch.from_struct_array(given.column(ROW))
        ids = batch.column(batch.schema.get_field_index("id"))
        records = read_batches(
            [batch],
            batch.schema,
            types,
            DEFAULT_SOURCE,
            where="the DataFrame",
            rows_before=done,
            mapping=mapping,
        )
        for arrival, record, identity in zip(arrivals, records, ids, strict=True):
            if not identity.is_valid:
                # In a file the number of a row stands in for its id; a DataFrame has no numbers.
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


def rejected_records(
    batch: pa.RecordBatch, types: TypeSystem, times: Times = NO_TIMES
) -> list[Rejected]:
    """The rows (`ROW`) of a batch that are no events or do not fit their types."""
    found = [record for _, record in read_rows(iter([batch]), types, times, with_arrival=False)]
    return [record for record in found if isinstance(record, Rejected)]


def rejected_batch(rejected: Sequence[Rejected]) -> pa.RecordBatch:
    """Rejected rows as JSON text, each with all its problems, by `REJECTED_DDL`."""
    texts = [each.raw if isinstance(each.raw, str) else each.raw.decode() for each in rejected]
    problems = pa.array([list(each.problems) for each in rejected], pa.list_(pa.string()))
    return pa.RecordBatch.from_pydict({"row": pa.array(texts, pa.string()), "problems": problems})


def disagreement(rejected: Sequence[Rejected]) -> JobError:
    """The error for rows that SQL has accepted and Python rejects."""
    shown = "; ".join(problem for each in rejected[:3] for problem in each.problems)
    return JobError(
        f"rows that SQL took for events were refused in the worker; please report this: {shown}"
    )
