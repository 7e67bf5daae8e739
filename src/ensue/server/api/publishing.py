"""Publishing over HTTP: CloudEvents in binary, structured and batched mode, and JSON lines.

In comes the body of a request; out go events, each with the JSON that the journal keeps, or every
problem of every event with its place. Of a batch, events that cannot be read are told and the
others are taken. An event without a `time` gets the time of its arrival, and one without an `id`
cannot be told from another, and is refused.
"""

from __future__ import annotations

import asyncio
import base64
import time
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from ensue.errors import EventError
from ensue.events.cloudevents import event_of, read_json
from ensue.events.event import Event
from ensue.events.times import format_time
from ensue.server.access.tokens import Principal
from ensue.server.api.problems import ProblemError
from ensue.server.api.reading import Parameters, media_type_of, principal_of, station_of
from ensue.server.settings import Settings

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"
LINES: Final = ("application/x-ndjson", "application/jsonl")
JSON: Final = "application/json"
LARGE_BODY: Final = 64 * 1024
"""A larger body is read in another thread, so that other requests need not wait for it."""
SHOWN: Final = 100
"""Refused events of one batch that are told of."""

Taken = list[tuple[Event, bytes]]

_encode = msgspec.json.Encoder().encode


class DeniedError(EventError):
    """An event of a type that the caller may not publish."""


class Rejection(msgspec.Struct, frozen=True):
    """An event of a batch that was not taken: its place from 0, and why."""

    index: int
    problems: tuple[str, ...]


class Unread(msgspec.Struct, frozen=True):
    """An event that was taken, and that a library could not read."""

    index: int
    library: str
    problems: tuple[str, ...]


class Published(msgspec.Struct, frozen=True):
    accepted: int
    duplicates: int
    position: int
    rejected: list[Rejection]
    unread: list[Unread]


async def publish(request: Request) -> Response:
    """Take events; the answer says that they are kept and that every rule has read them."""
    principal = principal_of(request, "publish")
    Parameters(request, ())
    station = station_of(request)
    body = await request.body()
    reader = _Reader(station.settings, principal)
    members = await _read(request, body)
    if len(members) > station.limits.batch_events:
        raise ProblemError(
            413,
            "batch",
            f"the batch has {len(members):,} events, and limit `batch_events` allows"
            f" {station.limits.batch_events:,}: send it in parts",
            limit="batch_events",
        )
    if len(body) > LARGE_BODY:
        taken, rejected = await asyncio.to_thread(reader.read_all, members)
    else:
        taken, rejected = reader.read_all(members)
    station.figures.rejected += len(rejected)
    if not taken:
        if reader.is_denied:
            problems = [each for one in rejected for each in one.problems]
            raise ProblemError(403, "subject", "no event may be taken", problems=problems[:SHOWN])
        return _nothing_taken(rejected, is_batch=_is_batch(request, body))
    if principal.event_rate is not None and (seconds := principal.event_rate.take(len(taken))):
        raise ProblemError(
            429,
            "rate",
            f"`{principal.name}` sends more events than its `events_per_second` allows"
            f" ({principal.event_rate.per_second:,}); try again in {seconds} s",
            {"Retry-After": str(seconds)},
        )
    done = await station.publish(taken, len(body))
    places = reader.places
    answer = Published(
        accepted=len(taken) - done.duplicates,
        duplicates=done.duplicates,
        position=done.last,
        rejected=rejected[:SHOWN],
        unread=[
            Unread(places[number], library, problems)
            for number, library, problems in done.unread[:SHOWN]
        ],
    )
    return Response(_encode(answer), 200, media_type="application/json")


def _nothing_taken(rejected: list[Rejection], is_batch: bool) -> Response:
    if not rejected:
        empty = Published(0, 0, 0, [], [])
        return Response(_encode(empty), 200, media_type="application/json")
    if not is_batch:
        raise ProblemError(
            422,
            "event",
            "the event cannot be taken: correct each of `problems`, and send it again",
            problems=rejected[0].problems,
        )
    raise ProblemError(
        422,
        "batch",
        "no event of the batch can be taken: correct each, and send them again",
        rejected=[msgspec.to_builtins(each) for each in rejected[:SHOWN]],
    )


def _is_batch(request: Request, body: bytes) -> bool:
    kind = media_type_of(request)
    return kind in (BATCH, *LINES) or (kind == JSON and body.lstrip()[:1] == b"[")


# --- from a body to JSON objects ----------------------------------------------------------------


async def _read(request: Request, body: bytes) -> list[Any]:
    kind = media_type_of(request)
    if "ce-type" in request.headers or "ce-id" in request.headers:
        return [_binary(request.headers, kind, body)]
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
        if len(body) > LARGE_BODY:
            value = await asyncio.to_thread(read_json, body)
        else:
            value = read_json(body)
    except EventError as error:
        raise ProblemError(400, "json", f"the body is no JSON: {error}") from None
    is_list = isinstance(value, list)
    if (kind == BATCH and not is_list) or (kind == STRUCTURED and is_list):
        needed = "a JSON array of events" if kind == BATCH else "one event as a JSON object"
        raise ProblemError(400, "json", f"`{kind}` is {needed}, and the body is something else")
    return value if is_list else [value]


def _lines(body: bytes) -> list[Any]:
    found: list[Any] = []
    for line in body.splitlines():
        if line.strip():
            try:
                found.append(read_json(line))
            except EventError as error:
                found.append(error)
    return found


def _binary(headers: Headers, kind: str, body: bytes) -> Any:
    """The event of binary mode: attributes in headers, the body as it is."""
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


# --- from JSON objects to events ----------------------------------------------------------------


class _Reader:
    """Reads the events of one request. `places` says where each that is taken stood."""

    def __init__(self, settings: Settings, principal: Principal) -> None:
        self._principal = principal
        self._largest = settings.limits.event_bytes
        self._now = time.time_ns() // 1000
        self._latest = self._now + settings.ahead if settings.server.clock == "wall" else None
        self._stamp = format_time(self._now)
        self.places: list[int] = []
        self.is_denied = False

    def read_all(self, members: list[Any]) -> tuple[Taken, list[Rejection]]:
        taken: Taken = []
        rejected: list[Rejection] = []
        for index, each in enumerate(members):
            try:
                taken.append(self._read(each))
            except EventError as error:
                self.is_denied = self.is_denied or isinstance(error, DeniedError)
                rejected.append(Rejection(index, error.problems))
            else:
                self.places.append(index)
        return taken, rejected

    def _read(self, members: Any) -> tuple[Event, bytes]:
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
