"""Rows to events in Python, on the map side: for what SQL cannot say exactly.

In come rows of any columns, or outputs of an earlier stage; out go, for one group, the events that
one of its rules wants, each with its position and the bucket of its key, once for each bucket that
reads it. An event travels as bytes of msgpack. The same reading also tells which rows are no
events, and why, and the times of those that are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from ensue.engine.ports import Key, Ports
from ensue.events.arrow import read_batches
from ensue.events.cloudevents import decode, encode, text_problem
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.events.types import TypeSystem
from ensue.spark import positions
from ensue.spark.ordered import ALL_KEYS, NO_KEYS
from ensue.spark.plan import Group, Plan

ARRIVAL = "ensue_arrival"
"""The column that keeps the order in which rows with equal times were given."""
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


class Wanting:
    """Which events a group wants, and under which buckets."""

    def __init__(
        self, plan: Plan, group: Group, keep_unkeyed: bool, names_rules: bool = False
    ) -> None:
        self._types = plan.library.types
        places = {names: place for place, names in enumerate(group.key_set)}
        self._rules = [
            (
                Ports(rule.correlation, self._types),
                {
                    port.name: 1 << places[rule.key_names(port)] if places else 1
                    for port in rule.event_ports
                },
            )
            for rule in group.rules
        ]
        self._names = [rule.name for rule in group.rules]
        self._names_rules = names_rules
        self.matched: list[str] = []
        self._keyed = group.is_keyed
        self._keep_unkeyed = keep_unkeyed

    def buckets(self, event: Event) -> dict[int, int]:
        """The buckets that read an event, each with the bits of its keys there.

        With `names_rules`, `matched` has the rules that have a port for it, and a key if they
        want one.
        """
        found: dict[int, int] = {}
        unkeyed = False
        self.matched = []
        for name, (ports, bits) in zip(self._names, self._rules, strict=True):
            matched = ports.matched(event)
            if not self._keyed:
                if matched:
                    self.matched.append(name)
                    found = {0: ALL_KEYS}
                    if not self._names_rules:
                        return found
                continue
            readings = ports.readings(event, matched)
            unkeyed |= bool(matched) and not readings
            if readings:
                self.matched.append(name)
            for key, reading in readings.items():
                bucket = bucket_of(key)
                for port in reading.ports:
                    found[bucket] = found.get(bucket, 0) | bits[port]
        if unkeyed and self._keep_unkeyed:
            # Counted once, whatever else becomes of the event.
            found.setdefault(-1, NO_KEYS)
        return found


def bucket_of(key: Key) -> int:
    """The same number for the same key, wherever it is worked out."""
    text = repr([_plain(kind, value) for kind, value in key])
    digest = hashlib.blake2b(text.encode(), digest_size=7)
    return int.from_bytes(digest.digest(), "big")


def _plain(kind: str, value: Any) -> tuple[str, Any]:
    if isinstance(value, float) and value.is_integer():
        return kind, int(value)
    return kind, str(value)


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
    """Each row as an event or as what is wrong with it, with its arrival."""
    done = 0
    for batch in batches:
        arrivals = [0] * batch.num_rows
        if with_arrival:
            place = batch.schema.get_field_index(ARRIVAL)
            arrivals = batch.column(place).to_pylist()
            batch = batch.remove_column(place)
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
