"""Publishing over HTTP: CloudEvents in binary, structured and batched mode, and JSON lines.

In comes a request, whose body `bodies` reads; out goes the answer, once the events are kept and
every rule has read them. Of a batch, events that cannot be read are told and the others are taken.
An event without a `time` gets the time of its arrival, and one without an `id` cannot be told from
another, and is refused.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.problems import ProblemError
from ensue.server.api.requests.reading import Parameters, media_type_of, principal_of, station_of
from ensue.server.api.v1.events.bodies import BATCH, JSON, LINES, BodyReader, Rejection

LARGE_BODY: Final = 64 * 1024
"""A larger body is read in another thread, so that other requests need not wait for it."""
SHOWN: Final = 100
"""Refused events of one batch that are told of."""

_encode = msgspec.json.Encoder().encode


class Unread(msgspec.Struct, frozen=True):
    """An event that was taken, and that a library could not read."""

    index: int
    library: str
    problems: tuple[str, ...]


class PublishAnswer(msgspec.Struct, frozen=True):
    accepted: int
    duplicates: int
    expired: int
    position: int
    rejected: list[Rejection]
    unread: list[Unread]


async def publish(request: Request) -> Response:
    """Take events; the answer says that they are kept and that every rule has read them."""
    principal = principal_of(request, "publish")
    Parameters(request, ())
    station = station_of(request)
    body = await request.body()
    reader = BodyReader(station.settings, principal, request.headers)
    if len(body) > LARGE_BODY:
        read = await asyncio.to_thread(reader.read, body)
    else:
        read = reader.read(body)
    taken, rejected = read.taken, read.rejected
    station.figures.rejected += len(rejected)
    if not taken:
        if read.is_denied:
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
    done = await station.publish(taken, len(body), read.stamped)
    places = read.places
    answer = PublishAnswer(
        accepted=len(taken) - done.duplicates - done.expired,
        duplicates=done.duplicates,
        expired=done.expired,
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
        empty = PublishAnswer(0, 0, 0, 0, [], [])
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
