"""CloudEvents 1.0 as JSON, in the structured form: one event, one line.

In comes a line; out goes an `Event`, or an `EventError` with all problems of the line. `encode`
makes a line of an event. There are three differences from CloudEvents: `specversion` is optional,
`time` is required, and an `id` or a `type` may be a number, which is taken as its text. A member
that is null counts as absent. Data are checked against declared types
in `conformance`. Files of many lines are read by `records`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ensue.errors import EventError
from ensue.events.event import RESERVED, Event
from ensue.events.times import format_time, microseconds_of, parse_time

VERSION = "1.0"
NESTING_LIMIT = 200
"""The most levels of nested data: more than people write, and safe for the Python stack."""
NUMBERED = ("id", "type")
"""The attributes of which a number is taken as its text."""
TEXT_ATTRIBUTES = frozenset({"datacontenttype", "dataschema", "subject"})
"""Optional context attributes of CloudEvents that must be text, unlike extensions."""

_decode_json = msgspec.json.Decoder().decode
_encode_json = msgspec.json.Encoder().encode
_UNCHANGED = frozenset({str, int, float, bool, type(None)})


def decode(line: bytes | str) -> Event:
    """The event in a line of JSON. Raises `EventError` with all problems."""
    return event_of(read_object(line))


def read_object(line: bytes | str) -> dict[str, Any]:
    """The members of a JSON object. Raises `EventError` if the text is no object."""
    members = read_json(line)
    if not isinstance(members, dict):
        raise EventError([f"a JSON object is needed, one event a line; given is {_kind(members)}"])
    return members


def event_of(members: dict[str, Any], zone: ZoneInfo | None = None) -> Event:
    """The event of the members of a JSON object; `members` is empty afterwards.

    With a `zone`, a time without an offset is local time there.
    """
    problems: list[str] = []
    if (version := members.pop("specversion", None)) is not None and version != VERSION:
        problems.append(version_problem(version))
    identity, source, type_ = (
        _text(members.pop(name, None), name, problems) for name in ("id", "source", "type")
    )
    time = _time(members.pop("time", None), zone, problems)
    data = members.pop("data", None)
    if (encoded := members.pop("data_base64", None)) is not None:
        if data is not None:
            problems.append("`data` and `data_base64` are both given: leave one of them out")
        else:
            data = _unpack(encoded, members.get("datacontenttype"), problems)
    for name, value in members.items():
        if type(value) is not str and value is not None:
            problems.extend(extension_problems(name, value))
    if problems:
        raise EventError(problems)
    if None in members.values():
        members = {name: value for name, value in members.items() if value is not None}
    return Event(identity, source, type_, time, data, members)


def encode(event: Event) -> bytes:
    """The event as one line of JSON, without the newline at its end.

    Raises `EventError` if it has a value that JSON cannot express.
    """
    try:
        return _encode_json(_members(event))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise EventError([f"`{event.id}` cannot be written as JSON: {error}"]) from None


def read_json(text: bytes | str) -> Any:
    """The value of a JSON text. Raises `EventError`, with place and reason, if it is none."""
    try:
        value = _decode_json(text)
    except RecursionError:
        raise EventError([f"the JSON is nested deeper than {NESTING_LIMIT} levels"]) from None
    except UnicodeError:
        raise EventError([_encoding_problem(text)]) from None
    except ValueError as error:
        raise EventError([_syntax_problem(text, str(error))]) from None
    raw = text if isinstance(text, bytes) else text.encode()
    if raw.count(b"{") + raw.count(b"[") > NESTING_LIMIT and _depth(value) > NESTING_LIMIT:
        raise EventError([f"the JSON is nested deeper than {NESTING_LIMIT} levels"])
    # The decoder keeps the last of two members of one name. Then the text has more colons than its
    # value; an escaped colon is one that the text lacks. Only then the text is read once more, by a
    # slower reader that sees every member.
    if isinstance(value, dict | list) and (
        has_escaped_colons(raw) or _encode_json(value).count(b":") != raw.count(b":")
    ):
        _refuse_duplicates(text)
    return value


def has_escaped_colons(text: bytes) -> bool:
    """Whether a JSON text may have colons that are not written as colons."""
    return b"\\u003" in text and (b"\\u003a" in text or b"\\u003A" in text)


def write_json(value: Any) -> str:
    """Any value of an event as JSON text."""
    return _encode_json(plain_json(value)).decode()


def plain_json(value: Any) -> Any:
    """The value with every datetime as RFC 3339 text; the value itself if it has none."""
    if type(value) in _UNCHANGED:
        return value
    if isinstance(value, datetime):
        return format_time(microseconds_of(value))
    if isinstance(value, Mapping):
        return {str(name): plain_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(each) for each in value]
    return value


def extension_problems(name: str, value: Any) -> list[str]:
    """The problems of a context attribute that is not required; empty if there are none.

    The optional attributes of CloudEvents are text; extensions are text, booleans or integers.
    """
    if isinstance(value, str):
        return []
    if name in TEXT_ATTRIBUTES:
        return [f"`{name}` must be a string; given is {_kind(value)}"]
    if isinstance(value, int):
        return []
    return [
        f"the extension `{_short(name)}` must be a string, a boolean or an integer;"
        f" given is {_kind(value)}: put it into `data` if it belongs to the event's content"
    ]


def version_problem(version: Any) -> str:
    return f"`specversion` must be `{VERSION}` or left out; given is {_brief(version)}"


def text_problem(name: str, value: Any) -> str:
    given = "it is missing" if value is None else f"given is {_brief(value)}"
    return f"`{name}` must be a non-empty string; {given}"


def _members(event: Event) -> dict[str, Any]:
    members: dict[str, Any] = {
        "specversion": VERSION,
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "time": format_time(event.time),
    }
    members |= {
        name: value
        for name, value in event.extensions.items()
        if value is not None and name not in RESERVED
    }
    if isinstance(event.data, bytes):
        members["data_base64"] = base64.b64encode(event.data).decode()
    elif event.data is not None:
        members["data"] = plain_json(event.data)
    return members


def text_of_number(value: Any) -> Any:
    """A number as its text, without a fraction where that is zero; any other value as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return str(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)


def _text(value: Any, name: str, problems: list[str]) -> str:
    if isinstance(value, str) and value:
        return value
    if name in NUMBERED and type(text := text_of_number(value)) is str and text:
        return text
    problems.append(text_problem(name, value))
    return ""


def _time(value: Any, zone: ZoneInfo | None, problems: list[str]) -> int:
    if not isinstance(value, str):
        given = "it is missing" if value is None else f"given is {_kind(value)}"
        problems.append(f"`time` must be an RFC 3339 string; {given}")
        return 0
    try:
        return parse_time(value, zone)
    except ValueError as error:
        problems.append(f"`time`: {error}")
        return 0


def _unpack(encoded: Any, content_type: Any, problems: list[str]) -> Any:
    """The data of `data_base64`: a JSON value, or bytes if the content type is not JSON."""
    if not isinstance(encoded, str):
        problems.append(f"`data_base64` must be a string; given is {_kind(encoded)}")
        return None
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        problems.append(f"`data_base64` is no base64: {str(error).lower()}")
        return None
    if isinstance(content_type, str) and not _is_json(content_type):
        return content
    try:
        return read_json(content)
    except EventError as error:
        problems.extend(f"the content of `data_base64`: {problem}" for problem in error.problems)
        return None


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type.endswith(("/json", "+json"))


def _encoding_problem(text: bytes | str) -> str:
    try:
        _ = text.decode() if isinstance(text, bytes) else text.encode()
    except UnicodeDecodeError as error:
        return f"the text is not UTF-8: byte {error.start + 1} is 0x{error.object[error.start]:02x}"
    except UnicodeEncodeError as error:
        return f"the text is no valid Unicode: character {error.start + 1} is half a character"
    return "the text is not UTF-8"


def _syntax_problem(text: bytes | str, reason: str) -> str:
    if not text.strip():
        return "the text is empty: a JSON value is needed"
    if place := re.fullmatch(r"JSON is malformed: (.*) \(byte (\d+)\)", reason):
        # The decoder counts from 0, and has already read the first of trailing characters.
        byte = int(place[2]) + (0 if place[1].startswith("trailing") else 1)
        return f"no JSON: {place[1]} at byte {byte}"
    if "truncated" not in reason:
        return f"no JSON that can be held: {reason[0].lower()}{reason[1:].partition(' - at')[0]}"
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return f"no JSON: the text ends too early, after byte {len(text)}"
    # Text that only the other reader accepts has an escape for half a character.
    return r"no JSON: a `\u` escape stands for half a character (a lone surrogate)"


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [
            inner for each in level for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


def _refuse_duplicates(text: bytes | str) -> None:
    twice: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                twice.append(name)
            names.add(name)

    try:
        json.loads(text, object_pairs_hook=note, parse_int=len)
    except (ValueError, RecursionError):
        # The fast reader has accepted the text; this one is only for the names of members.
        return
    if twice:
        whole = text.decode() if isinstance(text, bytes) else text
        raise EventError([_duplicate_problem(name, whole) for name in dict.fromkeys(twice)])


def _duplicate_problem(name: str, text: str) -> str:
    places = [each.start() for each in re.finditer(rf"{re.escape(json.dumps(name))}\s*:", text)]
    place = f" (again at character {places[1] + 1})" if len(places) > 1 else ""
    return f"the member `{_short(name)}` is given twice{place}: leave one of them out"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return f"the boolean {_brief(value)}"
    if isinstance(value, str):
        return f"the string {_brief(value)}"
    if isinstance(value, int | float):
        return f"the number {_brief(value)}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    return "null" if value is None else f"a {type(value).__name__}"


def _brief(value: Any) -> str:
    return _short(write_json(value))


def _short(text: str) -> str:
    """The beginning of a text for messages: a bad line may have megabytes."""
    return text if len(text) <= 60 else f"{text[:60]}..."
