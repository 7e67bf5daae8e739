"""CloudEvents as records of Kafka: what is an event, what is none, and both ways."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ensue.errors import EventError, UsageError
from ensue.events.event import Event
from ensue.spark.kafka.records import Place, read_record, write_record

TIME = "2024-05-06T07:08:09.123456Z"
EVENT = Event.of(
    "Reading",
    id="e1",
    source="plant/7",
    time=TIME,
    data={"Sensor": 7, "Value": 2.5, "name": "Prüfstand"},
    subject="boiler",
    partitionkey="7",
)
BINARY = (
    ("ce_specversion", b"1.0"),
    ("ce_id", b"e1"),
    ("ce_source", b"plant/7"),
    ("ce_type", b"Reading"),
    ("ce_time", TIME.encode()),
)


def members(**changed: Any) -> bytes:
    event = {"id": "e1", "source": "plant/7", "type": "Reading", "time": TIME, **changed}
    return json.dumps({name: value for name, value in event.items() if value is not None}).encode()


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_an_event_comes_back_as_it_was_written(mode: str) -> None:
    record = write_record(EVENT, mode)

    back = read_record(record.key, record.value, record.headers)

    assert back.extensions.get("datacontenttype", "application/json") == "application/json"
    extensions = {n: each for n, each in back.extensions.items() if n != "datacontenttype"}
    assert (back.id, back.source, back.type, back.time, back.data, extensions) == (
        EVENT.id,
        EVENT.source,
        EVENT.type,
        EVENT.time,
        EVENT.data,
        EVENT.extensions,
    )


def test_in_binary_mode_attributes_are_headers_and_the_value_is_the_data() -> None:
    record = write_record(EVENT, "binary")

    assert dict(record.headers) == {
        **dict(BINARY),
        "ce_subject": b"boiler",
        "ce_partitionkey": b"7",
        "content-type": b"application/json",
    }
    assert json.loads(record.value or b"") == EVENT.data


def test_in_structured_mode_the_value_is_the_event_and_the_content_type_says_so() -> None:
    record = write_record(EVENT, "structured")

    assert record.headers == (("content-type", b"application/cloudevents+json; charset=UTF-8"),)
    assert json.loads(record.value or b"")["id"] == "e1"


def test_the_key_of_a_record_is_the_partition_key_of_its_event() -> None:
    assert write_record(EVENT).key == b"7"
    assert write_record(Event.of("Reading", id="e2", time=TIME)).key is None


def test_bytes_that_are_no_json_travel_as_they_are() -> None:
    picture = Event.of("Picture", id="p", time=TIME, data=b"\x89PNG", datacontenttype="image/png")

    for mode in ("binary", "structured"):
        record = write_record(picture, mode)
        assert read_record(None, record.value, record.headers).data == b"\x89PNG"
    assert write_record(picture, "binary").value == b"\x89PNG"


def test_a_record_without_headers_is_read_as_an_event_in_json() -> None:
    assert read_record(None, members(data={"Sensor": 1}), ()).data == {"Sensor": 1}


def test_an_event_in_binary_mode_may_have_no_data() -> None:
    assert read_record(None, None, BINARY).data is None
    assert read_record(None, b"", BINARY).data is None


def test_where_a_record_stands_is_part_of_its_event() -> None:
    event = read_record(b"k", members(), (), Place("readings", 3, 41))

    assert event.extensions == {
        "kafkakey": "k",
        "kafkatopic": "readings",
        "kafkapartition": 3,
        "kafkaoffset": 41,
    }


def test_records_of_a_partition_are_in_the_order_of_their_offsets() -> None:
    places = [
        Place("t", partition, offset) for partition in (0, 1, 999) for offset in (0, 5, 2**47)
    ]

    assert sorted(places, key=lambda place: place.order) == places
    assert max(place.order for place in places) < 2**63


@pytest.mark.parametrize(
    ("value", "headers", "told"),
    [
        (b"hello", (), "no JSON"),
        (None, (), "has no value"),
        (b"[1]", (), "a JSON object is needed"),
        (members(time=None), (), "`time` must be"),
        (b"{}", (("content-type", b"application/cloudevents+avro"),), "cloudevents\\+avro"),
        (b"[]", (("content-type", b"application/cloudevents-batch+json"),), "batch\\+json"),
        (b"{}", BINARY[:3] + BINARY[4:], "`type` must be a non-empty string"),
        (b"{}", BINARY[:4], "`time` must be an RFC 3339 string; it is missing"),
        (b"{}", (*BINARY[:4], ("ce_time", b"noon")), "`time`:"),
        (b"{]", BINARY, "the value of the record: no JSON"),
        (b"{}", (*BINARY, ("ce_id", b"e2")), "`ce_id` is there twice"),
        (b"{}", (("ce_specversion", b"0.3"), *BINARY[1:]), "`specversion` must be"),
        (b"{}", (*BINARY, ("ce_subject", b"\xff")), "`ce_subject` is no UTF-8"),
        (b"{}", (*BINARY, ("ce_data", b"{}")), "are its value, and no header"),
    ],
)
def test_what_is_no_event_is_refused_with_the_reason(
    value: bytes | None, headers: tuple[tuple[str, bytes], ...], told: str
) -> None:
    with pytest.raises(EventError) as caught:
        read_record(None, value, headers)

    assert re.search(told, str(caught.value))


def test_all_that_is_wrong_with_a_record_is_told_at_once() -> None:
    with pytest.raises(EventError) as caught:
        read_record(None, b"{]", (("ce_id", b""),))

    assert len(caught.value.problems) == 5


def test_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match=r"`avro`.*`binary` or `structured`"):
        write_record(EVENT, "avro")


def test_an_id_and_a_type_that_are_numbers_are_their_text() -> None:
    event = read_record(None, members(id=42, type=4624), ())

    assert (event.id, event.type) == ("42", "4624")
