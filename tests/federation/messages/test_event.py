"""The common event and the messages of services hold all that an event holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from ensue.errors import EventError, UsageError
from ensue.events.event import Event
from ensue.events.expiry import expiry_of
from ensue.federation.messages import bindings
from ensue.federation.messages.attributes import (
    at_service,
    for_sending,
    identity_of,
    path_of,
    priority_of,
)
from ensue.federation.messages.bindings import Message, NameBinding, read_structured
from ensue.federation.messages.event import CommonEvent, Fields

from .strategies import events

SPEED = Event.of(
    "Speed", time=0, id="1", source="car", data={"speed": 52.5, "plate": "D 123"}, priority=7
)


@given(events())
def test_an_event_becomes_common_and_back_without_loss(event: Event) -> None:
    assert CommonEvent.of(event).event == event


@given(events())
def test_structured_messages_keep_everything(event: Event) -> None:
    binding = NameBinding("ce-")

    assert binding.read(binding.write(event, "structured")) == event


@given(events(texts_only=True))
def test_binary_messages_keep_everything_that_headers_can_carry(event: Event) -> None:
    binding = NameBinding("ce_")
    read = binding.read(binding.write(event, "binary"))

    if isinstance(event.data, bytes) and event.data:
        assert read.extensions["datacontenttype"] == "application/octet-stream"
        assert read.data == event.data
    else:
        assert read == event or (event.data == b"" and read.data is None)


def test_fields_are_found_by_position_and_by_name() -> None:
    common = CommonEvent.of(SPEED)

    assert common.subject == "Speed"
    assert common.parameters[0] == common.parameters["speed"]
    assert (common.parameters[1].type, common.parameters[0].type) == ("string", "double")
    assert common.attributes["priority"].value == 7
    assert [field.name for field in common.attributes] == ["id", "source", "time", "priority"]


def test_a_field_is_replaced_in_its_place() -> None:
    fields = Fields([("a", 1), ("b", 2)])

    assert list(fields.replaced("a", 3).values().items()) == [("a", 3), ("b", 2)]
    assert fields.without("a").values() == {"b": 2}


def test_a_name_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="`a` is given twice"):
        Fields([("a", 1), ("a", 2)])


def test_a_message_without_a_time_gets_the_present_one() -> None:
    event = read_structured(b'{"id": "1", "source": "s", "type": "T"}')

    assert event.time > 1_600_000_000_000_000


def test_all_that_is_wrong_with_a_message_is_told() -> None:
    with pytest.raises(EventError) as told:
        NameBinding("ce-").read(
            Message(b"{", "application/json", {"ce-specversion": "2", "ce-id": ""})
        )

    assert len(told.value.problems) == 5


def test_the_origin_of_an_event_is_the_first_service_of_its_path() -> None:
    here = at_service(SPEED, "cars", "mqtt")
    there = at_service(for_sending(here), "office", "redis")

    assert here.extensions["ensueorigin"] == there.extensions["ensueorigin"] == "cars"
    assert there.extensions["ensuekind"] == "mqtt"
    assert path_of(there) == ("cars", "office")
    assert "ensueorigin" not in for_sending(there).extensions


def test_the_identity_of_an_event_does_not_depend_on_its_way() -> None:
    binding = NameBinding("ce-")
    moved = binding.read(binding.write(at_service(SPEED, "cars", "mqtt"), "binary"))

    assert identity_of(moved) == identity_of(SPEED)
    assert identity_of(SPEED) != identity_of(Event.of("Speed", time=1, id="1", source="car"))


@pytest.mark.parametrize(
    ("given", "taken"), [(None, 4), (9, 9), (12, 9), (-1, 0), ("3", 3), ("high", 4), (True, 4)]
)
def test_a_priority_outside_the_range_is_moved_into_it(
    given: str | bool | int | None, taken: int
) -> None:
    assert priority_of(Event.of("T", time=0, priority=given)) == taken


def test_an_expiry_that_is_no_time_means_never() -> None:
    assert expiry_of(Event.of("T", time=0, expirytime="soon")) is None
    assert expiry_of(Event.of("T", time=0, expirytime="1970-01-01T00:00:01Z")) == 1_000_000


@pytest.mark.parametrize(
    ("content_type", "data", "body"),
    [
        ("text/plain", "abc", b"abc"),
        ("application/xml", "<a>ü</a>", "<a>ü</a>".encode()),
        ("application/x-own", b"\x00\x01", b"\x00\x01"),
        ("text/plain", "", b""),
    ],
)
def test_data_of_a_type_other_than_json_travels_as_it_is(
    content_type: str, data: str | bytes, body: bytes
) -> None:
    event = Event("1", "s", "T", 0, data, {"datacontenttype": content_type})
    message = NameBinding("ce-").write(event, "binary")
    read = NameBinding("ce-").read(message)

    assert (message.body, message.content_type) == (body, content_type)
    assert (read.data or None, read.extensions) == (data or None, event.extensions)
    assert identity_of(read) == identity_of(event)


def test_an_event_is_the_same_whether_its_type_of_data_is_said_or_not() -> None:
    binding = NameBinding("ce-")
    said = Event("1", "s", "T", 0, {"n": 1}, {"datacontenttype": "application/json"})
    read = binding.read(binding.write(said, "binary"))

    assert "datacontenttype" not in read.extensions
    assert identity_of(read) == identity_of(said)


@pytest.mark.parametrize("headers", [{}, {"ce-specversion": "1.0"}])
def test_an_event_without_a_time_is_the_same_whenever_it_is_read(
    headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = {"id": "1", "source": "s", "type": "T"}
    headers = {**headers, **{f"ce-{name}": value for name, value in attributes.items() if headers}}
    body = b"5" if headers else b'{"id": "1", "source": "s", "type": "T", "data": 5}'
    message = Message(body, "application/json", headers)
    binding = NameBinding("ce-")
    monkeypatch.setattr(bindings, "_now", lambda: 1_000_000)
    once = binding.read(message)
    monkeypatch.setattr(bindings, "_now", lambda: 2_000_000)
    again = binding.read(message)

    assert (once.time, again.time) == (1_000_000, 2_000_000)
    assert identity_of(once) == identity_of(again)
    assert identity_of(binding.read(binding.write(once, "binary"))) == identity_of(again)


@pytest.mark.parametrize(
    "extensions",
    [
        {"two words": "x"},
        {"Upper": "x"},
        {"own": "a\r\nb"},
        {"own": " x "},
        {"own": ""},
        {"own": "\x00"},
        {"own": "x" * 70_000},
    ],
    ids=str,
)
@pytest.mark.parametrize("data", [{"n": 1}, b"\x00"], ids=["json", "octets"])
def test_what_headers_cannot_carry_goes_as_a_whole(extensions: dict[str, str], data: Any) -> None:
    binding = NameBinding("ce-")
    event = Event("1", "s", "T", 0, data, extensions)
    message = binding.write(event, "binary")
    read = binding.read(message)

    assert (message.headers, message.content_type) == ({}, "application/cloudevents+json")
    assert read.data == data
    assert identity_of(read) == identity_of(event)


@pytest.mark.parametrize("data", [10**30, -(2**63) - 1, {"n": [2**64]}])
def test_integers_of_any_size_have_an_identity(data: Any) -> None:
    event = Event("1", "s", "T", 0, data, {"own": 10**30})

    assert identity_of(event) != identity_of(Event("1", "s", "T", 0, 1, {"own": 10**30}))


def test_an_id_and_a_type_that_are_numbers_are_their_text() -> None:
    """As in files; every adapter reads its messages here."""
    event = read_structured(b'{"id": 42, "source": "s", "type": 4624, "data": {"n": 1}}')

    assert (event.id, event.type) == ("42", "4624")
