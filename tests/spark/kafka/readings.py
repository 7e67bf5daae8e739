"""The readings of the streaming tests as records: in both modes of CloudEvents, over partitions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from ensue.events.event import Event
from ensue.spark.kafka.records import write_record

from .topics import Plain


def record(row: dict[str, Any], mode: str = "structured", partition: int | None = None) -> Plain:
    """A reading, or a heartbeat, as a producer would send it, with its sensor as the key."""
    sensor = row["Sensor"]
    data = None if sensor is None else {"Sensor": sensor, "Value": row["Value"]}
    event = Event(row["id"], "spark", row["type"], row["time"], data, {})
    made = write_record(event, mode)
    headers = tuple((name, value or b"") for name, value in made.headers)
    key = b"none" if sensor is None else str(sensor).encode()
    return Plain(made.value, key, headers, partition)


def records(rows: Sequence[dict[str, Any]], random: Random) -> list[Plain]:
    """The rows in their order, each in one of the two modes, in the partition of its sensor."""
    return [
        record(row, random.choice(["binary", "structured"]), (row["Sensor"] or 0) % 2)
        for row in rows
    ]
