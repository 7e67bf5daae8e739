"""A small stream of readings and rules of every kind over it, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa

import ensue
from ensue.events.event import Event
from ensue.events.times import datetime_of

from .cutting import HEARTBEAT, shuffled_within

LIBRARY = """
eventtype Reading { attribute long Sensor; attribute double Value; };
eventtype Alarm { attribute long Sensor; };
eventtype Rising : Alarm { attribute double Rise; };
Alarm correlation Jump (Reading low where Value < 10.0, Reading high where Value >= 10.0)
    low ; high within 1 min by Sensor
{ case true: push new Rising { Sensor = high.Sensor, Rise = high.Value - low.Value }; }
Alarm ecl Silence (Reading r) by Sensor
{ repeat { sequential { r, do { push(Alarm) { timeout(3 s) } } unless { r } } } }
Alarm correlation Extremes (Reading cold where Value < 1.0, Reading hot where Value > 19.0)
    cold + hot
{ case true: push new Rising { Sensor = cold.Sensor, Rise = hot.Value - cold.Value }; }
"""
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("Sensor", pa.int32()),
        ("Value", pa.float64()),
    ]
)
START = 1_700_000_000_000_000
LATENESS = 2_000_000
TAIL = 30_000_000


def readings(count: int, random: Random, sensors: int = 5) -> list[dict[str, Any]]:
    """Readings in the order of their times, with ties."""
    return [
        {
            "id": f"e{number}",
            "type": "Reading",
            "time": START + number // 2 * 400_000,
            "Sensor": random.randrange(sensors),
            "Value": random.random() * 20,
        }
        for number in range(count)
    ]


def heartbeat(time: int) -> dict[str, Any]:
    return {"id": "heartbeat", "type": HEARTBEAT, "time": time, "Sensor": None, "Value": None}


def arriving(rows: Sequence[dict[str, Any]], random: Random) -> list[dict[str, Any]]:
    """Readings in an order of arrival in which none is late, and a heartbeat that settles all."""
    order = shuffled_within([row["time"] for row in rows], LATENESS, random)
    return [*(rows[place] for place in order), heartbeat(rows[-1]["time"] + TAIL)]


def table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def event_of(row: dict[str, Any]) -> Event:
    data = {"Sensor": row["Sensor"], "Value": row["Value"]}
    return Event(row["id"], "spark", row["type"], row["time"], data, {})


def as_found(output: Event) -> tuple[Any, ...]:
    """An output in the form in which rows are compared."""
    told = [output.extensions[name] for name in ("trigger", "causes")]
    values = [output.attributes.get(name) for name in ("Sensor", "Rise")]
    return output.extensions["correlation"], output.id, *told, *values


def expected(rows: Sequence[dict[str, Any]], library: str = LIBRARY) -> list[tuple[Any, ...]]:
    """What the definitions say of readings, up to the time that the heartbeat settles."""
    events = [event_of(row) for row in rows]
    until = datetime_of(rows[-1]["time"] + TAIL - LATENESS)
    made = ensue.parse(library).run(events, engine="reference", until=until)
    return sorted(as_found(output) for output in made)


def found(rows: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows of a stream's outputs in the same form."""
    names = ("correlation", "id", "trigger", "causes", "Sensor", "Rise")
    return sorted(tuple(row[name] for name in names) for row in rows)
