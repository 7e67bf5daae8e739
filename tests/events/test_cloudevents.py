"""CloudEvents as JSON lines."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EventError
from ensue.events.cloudevents import NESTING_LIMIT, decode, encode, read_json
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.types import Attribute, EventType, TypeSystem

from .vocabulary import events, exactly, instants, json_values, names, value_types, values_of

WHOLE = {"id": "1", "source": "s", "type": "A", "time": "1970-01-01T00:00:01Z"}


def line(**members: Any) -> bytes:
    """A good line with some members changed; those that are `...` are left out."""
    changed = {**WHOLE, **members}
    return json.dumps({k: v for k, v in changed.items() if v is not ...}).encode()


def problems_of(text: bytes | str) -> tuple[str, ...]:
    with pytest.raises(EventError) as caught:
        decode(text)
    return caught.value.problems


@given(events)
def test_decoding_what_was_encoded_gives_the_same_event(event: Event) -> None:
    again = decode(encode(event))
    assert again == event
    assert exactly(again.data) == exactly(event.data)


@given(events)
def test_an_encoded_event_is_one_line_of_json_in_the_order_of_its_parts(event: Event) -> None:
    encoded = encode(event)
    assert b"\n" not in encoded
    order = list(json.loads(encoded))
    data = ["data"] if event.data is not None else []
    assert order == ["specversion", "id", "source", "type", "time", *event.extensions, *data]


@given(st.data())
def test_typed_data_survives_encoding_decoding_and_conforming(data: st.DataObject) -> None:
    attributes = data.draw(st.dictionaries(names, value_types, min_size=1, max_size=4))
    types = TypeSystem.of(EventType("T", None, tuple(Attribute(*a) for a in attributes.items())))
    values = {name: data.draw(st.none() | values_of(t)) for name, t in attributes.items()}
    event = Event("1", "s", "T", data.draw(instants), values)
    again = conform(decode(encode(event)), types)
    assert exactly(again.data) == exactly(values)


def test_text_and_bytes_are_decoded_alike() -> None:
    assert decode(line()) == decode(line().decode()) == Event("1", "s", "A", 1_000_000)


def test_the_version_may_be_left_out_or_null_or_right() -> None:
    assert decode(line(specversion="1.0")) == decode(line(specversion=None)) == decode(line())


def test_a_member_that_is_null_is_absent() -> None:
    assert decode(line(subject=None, data=None)) == decode(line())


def test_no_data_and_empty_data_are_told_apart() -> None:
    assert decode(line()).data is None
    assert decode(line(data={})).data == {}
    assert b"data" not in encode(decode(line()))
    assert b'"data":{}' in encode(decode(line(data={})))


def test_every_other_member_is_an_extension() -> None:
    event = decode(line(subject="door", hops=3, urgent=True))
    assert event.extensions == {"subject": "door", "hops": 3, "urgent": True}


def test_all_problems_of_a_line_are_named_at_once() -> None:
    text = line(specversion="0.3", id="", source=3, type=..., time="noon", hops=1.5, subject=7)
    problems = problems_of(text)
    assert [problem.partition("`")[2].partition("`")[0] for problem in problems] == [
        "specversion",
        "id",
        "source",
        "type",
        "time",
        "hops",
        "subject",
    ]


@pytest.mark.parametrize("value", [1.0, [1], {"a": 1}])
def test_an_extension_that_is_no_text_boolean_or_integer_is_a_problem(value: Any) -> None:
    (problem,) = problems_of(line(extra=value))
    assert "the extension `extra` must be a string, a boolean or an integer" in problem


def test_a_message_cuts_what_is_long_short() -> None:
    problems = problems_of(line(**{"x" * 10**6: 1.5, "specversion": "y" * 10**6}))
    assert all(len(problem) < 300 for problem in problems)


@pytest.mark.parametrize("time", [..., None, 0, True, ["1970-01-01T00:00:01Z"]])
def test_a_time_that_is_missing_or_no_text_is_a_problem(time: Any) -> None:
    (problem,) = problems_of(line(time=time))
    assert problem.startswith("`time` must be an RFC 3339 string; ")


@pytest.mark.parametrize("text", ["[]", "3", '"event"', "null", "true"])
def test_json_that_is_no_object_is_a_problem(text: str) -> None:
    (problem,) = problems_of(text)
    assert problem.startswith("a JSON object is needed, one event a line")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"id" 1}', "no JSON: expected ':' at byte 7"),
        (b'{"id": NaN}', "no JSON: invalid character at byte 8"),
        (b'{"id": 1} 2', "no JSON: trailing characters at byte 11"),
        (b'{"id": "1', "no JSON: the text ends too early, after byte 9"),
        (b'{"id": "\xff"}', "the text is not UTF-8: byte 9 is 0xff"),
        ('{"id": "\ud800"}', "the text is no valid Unicode: character 9 is half a character"),
        (b'{"id": "\\ud800"}', r"no JSON: a `\u` escape stands for half a character"),
        (b'{"id": 1e999}', "no JSON that can be held: number out of range"),
        (b'{"id": ' + b"9" * 5000 + b"}", "no JSON that can be held: integer value out of range"),
        (b"", "the text is empty"),
        (b"{" * 10_000, "no JSON"),
        (b"[" * 100_000, f"nested deeper than {NESTING_LIMIT} levels"),
        (b"[" * 300 + b"]" * 300, f"nested deeper than {NESTING_LIMIT} levels"),
    ],
)
def test_text_that_is_no_json_is_refused_with_the_reason_and_the_place(
    text: bytes | str, reason: str
) -> None:
    (problem,) = problems_of(text)
    assert reason in problem


def test_data_may_be_nested_up_to_the_limit() -> None:
    depth = NESTING_LIMIT - 1
    event = decode(line(data="x").replace(b'"x"', b"[" * depth + b"]" * depth))
    assert decode(encode(event)) == event


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert len(decode(line(data=[[]] * 5000)).data) == 5000


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"id": "1", "id": "2"}', "id"),
        ('{"id": "1", "i\\u0064": "2"}', "id"),
        ('{"data": {"a": 1, "a": ":"}}', "a"),
        ('{"data": [{"x": {"a:": 1, "a:" : 1}}], "b": "\\u003a"}', "a:"),
    ],
)
def test_a_member_that_is_given_twice_is_refused_by_name(text: str, name: str) -> None:
    (problem,) = problems_of(text)
    assert problem.startswith(f"the member `{name}` is given twice")


def test_a_member_that_is_given_twice_is_shown_where_it_comes_again() -> None:
    (problem,) = problems_of('{"id": "1", "id": "2"}')
    assert "again at character 13" in problem


@given(json_values)
def test_colons_and_escapes_in_text_are_no_duplicates(value: Any) -> None:
    for ascii_only in (True, False):
        assert exactly(read_json(json.dumps(value, ensure_ascii=ascii_only))) == exactly(value)


@pytest.mark.parametrize("content_type", [..., "application/json; charset=utf-8", "text/x+JSON"])
def test_base64_data_is_json_where_the_content_type_does_not_say_otherwise(
    content_type: Any,
) -> None:
    packed = base64.b64encode(b'{"a": [1]}').decode()
    assert decode(line(data_base64=packed, datacontenttype=content_type)).data == {"a": [1]}


def test_base64_data_of_another_content_type_stays_bytes_and_goes_out_as_such() -> None:
    packed = base64.b64encode(b"\x00\xff").decode()
    event = decode(line(data_base64=packed, datacontenttype="image/png"))
    assert event.data == b"\x00\xff"
    assert json.loads(encode(event))["data_base64"] == packed
    assert decode(encode(event)) == event


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        ("%%%", "`data_base64` is no base64"),
        ("YQ", "`data_base64` is no base64"),
        ("é", "`data_base64` is no base64"),
        (3, "`data_base64` must be a string"),
        (base64.b64encode(b"{").decode(), "the content of `data_base64`: no JSON"),
        (base64.b64encode(b"\xff").decode(), "the content of `data_base64`: "),
    ],
)
def test_base64_data_that_cannot_be_unpacked_is_a_problem(packed: Any, reason: str) -> None:
    (problem,) = problems_of(line(data_base64=packed))
    assert problem.startswith(reason)


def test_data_may_be_given_only_once() -> None:
    (problem,) = problems_of(line(data=1, data_base64="MQ=="))
    assert "both given" in problem


def test_datetimes_in_data_are_written_in_utc_as_short_as_they_can_be() -> None:
    at = datetime(2024, 5, 6, 7, 8, 9, 500_000, UTC)
    event = Event("1", "s", "A", 0, {"at": at, "all": [at]})
    assert json.loads(encode(event))["data"] == {
        "at": "2024-05-06T07:08:09.5Z",
        "all": ["2024-05-06T07:08:09.5Z"],
    }


def test_numbers_that_are_not_finite_are_never_written() -> None:
    event = Event("1", "s", "A", 0, {"a": float("nan"), "b": [float("-inf")]})
    assert json.loads(encode(event))["data"] == {"a": None, "b": [None]}


@pytest.mark.parametrize("data", [object(), {"a": "\ud800"}, {"at": datetime(2024, 1, 1)}])
def test_an_event_that_json_cannot_say_is_refused(data: Any) -> None:
    with pytest.raises(EventError, match="cannot be written as JSON"):
        encode(Event("1", "s", "A", 0, data))


@given(st.binary() | st.text() | json_values.map(json.dumps))
def test_no_text_raises_anything_but_an_event_error(text: bytes | str) -> None:
    with suppress(EventError):
        decode(text)


@pytest.mark.parametrize(
    ("number", "text"), [(7, "7"), (2**70, str(2**70)), (-3, "-3"), (4624.0, "4624"), (1.5, "1.5")]
)
def test_an_id_and_a_type_that_are_numbers_are_their_text(number: float, text: str) -> None:
    event = decode(line(id=number, type=number))

    assert (event.id, event.type) == (text, text)


@pytest.mark.parametrize("value", [True, [1], {"a": 1}])
def test_other_values_are_no_id(value: object) -> None:
    (problem,) = problems_of(line(id=value))

    assert problem.startswith("`id` must be a non-empty string")
