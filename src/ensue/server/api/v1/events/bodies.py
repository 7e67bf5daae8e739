"""From the body of a request to events, each with the JSON that the journal keeps.

In comes a body in any of the forms of CloudEvents over HTTP: structured, batched or binary, or JSON
lines; out go events, and every problem of every event that cannot be taken, with its place. Most
batches are plain: every event has the members that each event has, and nothing is wrong with any.
They are decoded as a whole by a decoder made for that shape, at a quarter of the price; the first
thing that does not fit sends the whole body the general way, which knows what to say about it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from starlette.datastructures import Headers

from ensue.errors import EventError
from ensue.events.cloudevents import NESTING_LIMIT, event_of, read_json
from ensue.events.event import Event
from ensue.events.times import EARLIEST, format_time, parse_time
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.problems import ProblemError
from ensue.server.settings import Settings
from ensue.server.station.record.decoding import PlainEvent

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
LINES: Final = ("application/x-ndjson", "application/jsonl")
JSON: Final = "application/json"

UTC_TIME: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](?:\.[0-9]{1,6})?Z$"
"""Times that Arrow reads as `parse_time` does."""
FEWEST_TOGETHER: Final = 32
"""Fewer times are read one by one."""

Taken = list[tuple[Event, bytes]]

_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines


_decode_plain = msgspec.json.Decoder(list[PlainEvent]).decode


class DeniedError(EventError):
    """An event of a type that the caller may not publish."""


class Rejection(msgspec.Struct, frozen=True):
    """An event of a batch that was not taken: its place from 0, and why."""

    index: int
    problems: tuple[str, ...]


class Read(msgspec.Struct):
    """The events of one body. `places` says where each that is taken stood in it.

    `stamped` are those of `taken`, from 0, that came without a time.
    """

    taken: Taken
    rejected: list[Rejection]
    places: Sequence[int]
    is_denied: bool = False
    stamped: set[int] = msgspec.field(default_factory=set)


class BodyReader:
    """Reads the body of one request."""

    def __init__(self, settings: Settings, principal: Principal, headers: Headers) -> None:
        self._principal = principal
        self._headers = headers
        self._kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        self._is_binary = "ce-type" in headers or "ce-id" in headers
        self._largest = settings.limits.event_bytes
        self._most = settings.limits.batch_events
        now = time.time_ns() // 1000
        self._latest = now + settings.ahead if settings.server.clock == "wall" else None
        self._stamp = format_time(now)

    def read(self, body: bytes) -> Read:
        """Raises `ProblemError` if the body as a whole cannot be read."""
        if self._kind in (BATCH, JSON) and not self._is_binary:
            found = self._plain(body)
            if found is not None:
                return found
        members = self._members(body)
        self._refuse_many(len(members))
        return self._each(members)

    def _refuse_many(self, count: int) -> None:
        if count > self._most:
            raise ProblemError(
                413,
                "batch",
                f"the batch has {count:,} events, and limit `batch_events` allows"
                f" {self._most:,}: send it in parts",
                limit="batch_events",
            )

    # --- plain batches --------------------------------------------------------------------------

    def _plain(self, body: bytes) -> Read | None:
        """The events of a batch in which nothing is out of the ordinary; None if something is."""
        try:
            found = _decode_plain(body)
        except (ValueError, RecursionError):
            return None
        self._refuse_many(len(found))
        # An escape may hide a second member of one name.
        if not found or b"\\" in body:
            return None
        unset = msgspec.UNSET
        without_version = [each for each in found if each.specversion is unset]
        for each in without_version:
            each.specversion = "1.0"
        # JSON has no line ends outside of its texts, where they are escaped.
        lines = _encode_lines(found)
        # The decoder keeps the last of two members of one name; then there are fewer colons.
        if lines.count(b":") - len(without_version) != body.count(b":"):
            return None
        texts = lines.split(b"\n")[:-1]
        if max(map(len, texts)) > self._largest:
            return None
        may_be_deep = _brackets(body) - 1 - 2 * len(found) > NESTING_LIMIT - 2
        if may_be_deep and any(_brackets(each) >= NESTING_LIMIT for each in texts):
            return None
        try:
            times = _times([each.time for each in found])
        except ValueError:
            return None
        if self._latest is not None and max(times) > self._latest:
            return None
        if not all(map(self._principal.may_have, {each.type for each in found})):
            return None
        events = [
            Event(each.id, each.source, each.type, at, None if each.data is unset else each.data)
            for each, at in zip(found, times, strict=True)
        ]
        return Read(list(zip(events, texts, strict=True)), [], range(len(events)))

    # --- from a body to JSON objects ------------------------------------------------------------

    def _members(self, body: bytes) -> list[Any]:
        kind = self._kind
        if self._is_binary:
            return [self._binary(body)]
        if kind in LINES:
            return _lines(body)
        if kind not in (STRUCTURED, BATCH, JSON):
            raise ProblemError(
                415,
                "media-type",
                f"the `Content-Type` is `{kind[:100]}`: send `{STRUCTURED}`, `{BATCH}`, `{JSON}`,"
                f" `{LINES[0]}`, or binary mode with `ce-` headers",
            )
        try:
            value = read_json(body)
        except EventError as error:
            raise ProblemError(400, "json", f"the body is no JSON: {error}") from None
        is_list = isinstance(value, list)
        if (kind == BATCH and not is_list) or (kind == STRUCTURED and is_list):
            needed = "a JSON array of events" if kind == BATCH else "one event as a JSON object"
            raise ProblemError(400, "json", f"`{kind}` is {needed}, and the body is something else")
        return value if is_list else [value]

    def _binary(self, body: bytes) -> Any:
        """The event of binary mode: attributes in headers, the body as it is."""
        headers, kind = self._headers, self._kind
        members: dict[str, Any] = {}
        for name, value in headers.items():
            if name.startswith("ce-"):
                members[name.removeprefix("ce-")] = unquote(value)
        if not body:
            return members
        if kind.endswith(("/json", "+json")) or not kind:
            try:
                members["data"] = read_json(body)
            except EventError as error:
                return EventError([f"the data: {each}" for each in error.problems])
        elif kind.startswith("text/"):
            members["datacontenttype"] = headers["content-type"]
            members["data"] = body.decode("utf-8", "replace")
        else:
            members["datacontenttype"] = headers["content-type"]
            members["data_base64"] = base64.b64encode(body).decode()
        return members

    # --- from JSON objects to events ------------------------------------------------------------

    def _each(self, members: list[Any]) -> Read:
        places: list[int] = []
        read = Read([], [], places)
        for index, each in enumerate(members):
            is_stamped = isinstance(each, dict) and each.get("time") is None
            try:
                read.taken.append(self._one(each))
            except EventError as error:
                read.is_denied = read.is_denied or isinstance(error, DeniedError)
                read.rejected.append(Rejection(index, error.problems))
            else:
                if is_stamped:
                    read.stamped.add(len(places))
                places.append(index)
        return read

    def _one(self, members: Any) -> tuple[Event, bytes]:
        if isinstance(members, EventError):
            raise members
        if not isinstance(members, dict):
            raise EventError(["an event is a JSON object, and something else is given"])
        if members.get("time") is None:
            members["time"] = self._stamp
        if "specversion" not in members:
            members["specversion"] = "1.0"
        body = _encode(members)
        if len(body) > self._largest:
            raise EventError(
                [
                    f"the event has {len(body):,} bytes, and limit `event_bytes` allows"
                    f" {self._largest:,}"
                ]
            )
        event = event_of(members)
        if self._latest is not None and event.time > self._latest:
            raise EventError(
                [
                    f"`time` lies further ahead of the server's clock ({self._stamp}) than limit"
                    " `ahead` allows: it would make all other events late; correct the clock of"
                    " the sender"
                ]
            )
        if not self._principal.may_have(event.type):
            raise DeniedError(
                [f"`{self._principal.name}` may not publish events of type `{event.type}`"]
            )
        return event, body


def _brackets(text: bytes) -> int:
    """How deep a JSON text may be nested at most."""
    return text.count(b"{") + text.count(b"[")


def _times(texts: Sequence[str]) -> list[int]:
    """As `parse_time` of each; many times in UTC are read together, at a fifth of the price.

    Raises `ValueError` at the first that is no time.
    """
    if len(texts) >= FEWEST_TOGETHER:
        # A server that is sent no batches starts without Arrow.
        import pyarrow as pa
        from pyarrow.compute import match_substring_regex

        given = pa.array(texts)
        # Arrow also reads forms that RFC 3339 does not know, so the shape comes first.
        if match_substring_regex(given, UTC_TIME).true_count == len(texts):
            with suppress(pa.ArrowInvalid):
                times: list[int] = given.cast(pa.timestamp("us", "UTC")).cast("int64").to_pylist()
                # It knows a year 0.
                if min(times) >= EARLIEST:
                    return times
    return list(map(parse_time, texts))


def _lines(body: bytes) -> list[Any]:
    found: list[Any] = []
    for line in body.splitlines():
        if line.strip():
            try:
                found.append(read_json(line))
            except EventError as error:
                found.append(error)
    return found
