"""The short way of reading records: it gives what the general code gives, and is taken for most."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ensue
from ensue.errors import EventError
from ensue.events.conformance import conform
from ensue.events.event import Event, Rejected
from ensue.spark.kafka.record_reader import COLUMNS, RecordReader
from ensue.spark.kafka.records import Header, Place, read_record, write_record

TYPES = ensue.parse(
    """
    eventtype Reading { attribute long Sensor; attribute double Value; };
    eventtype Pressure : Reading {
        attribute float Bar; attribute timestamp Since; attribute sequence<long> Steps;
    };
    eventtype Tick {};
    """
).checked.types
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SECOND = "2024-05-06T07:08:09"
TIMES = [
    f"{SECOND}{each}" for each in ("Z", ".5Z", ".123456Z", ".1234567Z", "+02:00", "z", "", ".Z")
]
TIMES += ["2024-05-06T07:08:60.5Z", "2024-02-30T00:00:00Z", "2024-05-06t07:08:09Z", "noon", ""]
DATA: list[Any] = [
    {"Sensor": 1, "Value": 2.5},
    {"Sensor": 1, "Value": 2},
    {"Sensor": 1.0, "Value": 10**400},
    {"Sensor": 2**40, "Value": 2.5},
    {"Sensor": None, "Value": None, "more": {"deep": ["a", {"b": "c"}], "colon": "a:b"}},
    {"Sensor": 1, "Value": "warm"},
    {"Sensor": 1},
    {"Sensor": 1, "Value": 1.5, "text": 'with "quotes" and \\'},
    {"Sensor": 1, "Value": 1.5, "Bar": 3, "Since": f"{SECOND}Z", "Steps": [1, 2.0]},
    {"Sensor": 1, "Value": 1.5, "Bar": 1e39, "Since": "noon", "Steps": ["a"]},
    {},
    [1],
    "text",
    None,
]
TEXTS: list[Any] = ["e1", "Prüfstand", "", None, 5]
EXTRAS: list[tuple[str, Any]] = [
    ("subject", "boiler"),
    ("subject", 5),
    ("flag", True),
    ("count", 2**70),
    ("real", 1.5),
    ("kafkatopic", "another"),
    ("datacontenttype", "application/json"),
    ("datacontenttype", "image/png"),
    ("data_base64", "e30="),
    ("Value", "an extension"),
    ("nothing", None),
]
CONTENT_TYPES = [
    b"application/json",
    b" Application/CloudEvents+JSON ; charset=UTF-8",
    b"image/png",
]
CONTENT_TYPES += [b"application/cloudevents+avro", b"\xff", b""]
BROKEN: list[Callable[[bytes], bytes | None]] = [
    lambda text: text[:-2],
    lambda text: text[:-1] + b', "id": "e1"}',
    lambda text: text.replace(b"}", b', "Sensor": 1}', 1),
    lambda text: b"\n " + text,
    lambda text: text.replace(b"e", b"\xff", 1),
    lambda text: text.replace(b'"Sensor"', b'"\\u0053ensor"'),
    lambda _: b"[" * 300 + b"]" * 300,
    lambda _: b"",
    lambda _: None,
]
MORE_HEADERS: list[Header] = [
    ("trace", b"17"),
    ("ce_id", b"e2"),
    ("CE_Subject", b"boiler"),
    ("ce_subject", b"\xff"),
    ("ce_data", b"{}"),
    ("ce_datacontenttype", b"text/plain"),
    ("ce_content-type", b"text/plain"),
    ("ce_empty", None),
]

Given = tuple[bytes | None, bytes | None, list[Header]]


def drawn(random: Random) -> Given:
    """A record in one of the modes, with perhaps something odd about it."""

    def is_odd() -> bool:
        return random.random() < 0.1

    attributes: dict[str, Any] = {
        "specversion": "0.3" if is_odd() else "1.0",
        "id": random.choice(TEXTS) if is_odd() else "e1",
        "source": random.choice(TEXTS) if is_odd() else "plant",
        "type": random.choice(["Reading", "Reading", "Pressure", "Tick", "Unknown"]),
        "time": random.choice(TIMES[5:] if is_odd() else TIMES[:5]),
    }
    attributes |= dict(random.sample(EXTRAS, random.randrange(3)))
    data = random.choice(DATA)
    key = random.choice([None, b"k", b"\xff"])
    headers: list[Header] = []
    if random.random() < 0.5:
        value: bytes | None = json.dumps(
            attributes | {"data": data}, ensure_ascii=is_odd()
        ).encode()
        headers = [("Content-Type", random.choice(CONTENT_TYPES[:2]))] if not is_odd() else []
    else:
        value = json.dumps(data).encode()
        headers = [
            (f"ce_{name}", None if each is None else str(each).encode())
            for name, each in attributes.items()
        ]
        headers.append(("content-type", random.choice(CONTENT_TYPES if is_odd() else [b""])))
    if is_odd():
        value = random.choice(BROKEN)(value or b"")
    if is_odd():
        headers.insert(random.randrange(len(headers) + 1), random.choice(MORE_HEADERS))
    return key, value, headers


def batch_of(records: Sequence[Given]) -> pa.RecordBatch:
    count = len(records)
    keys, values, headers = zip(*records, strict=True)
    told = [[{"key": name, "value": value} for name, value in each] for each in headers]
    columns = [
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(["readings"] * count),
        pa.array([3] * count, pa.int32()),
        pa.array(range(count), pa.int64()),
        pa.array(told, HEADERS),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))


def in_full(given: Given, number: int) -> Event | tuple[str, ...]:
    key, value, headers = given
    try:
        return conform(read_record(key, value, headers, Place("readings", 3, number)), TYPES)
    except EventError as error:
        return tuple(error.problems)


@pytest.mark.parametrize("seed", range(3))
def test_every_record_is_read_as_the_general_code_reads_it(seed: int) -> None:
    random = Random(seed)
    given = [drawn(random) for _ in range(1500)]

    got = list(RecordReader(TYPES).read(batch_of(given)))

    assert [order for order, _ in got] == [
        Place("readings", 3, number).order for number in range(len(given))
    ]
    for number, (_, each) in enumerate(got):
        wanted = in_full(given[number], number)
        if isinstance(each, Rejected):
            assert each.problems == wanted
            assert json.loads(each.raw)["offset"] == number
        else:
            # What is written, so that 1 and 1.0, and the order of extensions, are not the same.
            assert repr(each) == repr(wanted)


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_a_plain_event_never_meets_the_general_code(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = RecordReader(TYPES)
    monkeypatch.setattr(reader, "_read_in_full", lambda *given: pytest.fail(str(given)))
    data = {"Sensor": 7, "Value": 2, "site": {"name": "Prüfstand", "lines": ["a", "b"]}}
    event = Event.of("Reading", id="e", time=f"{SECOND}.25Z", data=data, subject="boiler", n=5)
    record = write_record(event, mode)

    ((_, got),) = reader.read(batch_of([(b"7", record.value, list(record.headers))]))

    assert isinstance(got, Event)
    assert (got.id, got.time, got.data["Value"]) == ("e", event.time, 2.0)
    assert got.extensions["kafkakey"] == "7"
