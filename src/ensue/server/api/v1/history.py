"""`/v1/history` and `/v1/outputs`: what was published, and what followed with its causes."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.events.cloudevents import decode, encode
from ensue.history.asking.bounding import bounded_by
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.problems import ProblemError
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    libraries_of,
    principal_of,
    read_filter,
    require_subject,
    station_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.station.entries import OUTPUT, JournalEntry
from ensue.server.station.rules.libraries import UnknownError
from ensue.server.station.rules.reasons import opened, why_output
from ensue.server.station.station import Station
from ensue.subscriptions import Filter

DEFAULT_LIMIT = 100
REREAD = 20_000
"""Events before an output that are read again to tell why it came."""
LARGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of events behind which an answer says that there is more."""


async def history(request: Request) -> Response:
    """Published events that match a filter, in the order of their times."""
    principal = principal_of(request, "history")
    given = Parameters(request, ("filter", "since", "until", "limit"))
    station = station_of(request)
    filter_ = await read_filter(request, principal, given.text("filter"))
    limit = given.number("limit", DEFAULT_LIMIT, 1, station.limits.answers)
    since, until = given.instant("since"), given.instant("until")
    await station.caught_up()
    query = _Query(station, principal, limit)
    return answered(await in_turn(request, query.answer, filter_, since, until))


class _Query:
    """One question to the history, within the limits of the server."""

    def __init__(self, station: Station, principal: Principal, limit: int) -> None:
        self._station = station
        self._principal = principal
        self._limit = limit

    def answer(
        self, filter_: Filter | None, since: int | None, until: int | None
    ) -> dict[str, Any]:
        seconds = self._station.limits.query_seconds
        deadline = time.monotonic() + seconds
        found: list[msgspec.Raw] = []
        size = 0

        def look() -> None:
            if time.monotonic() > deadline:
                raise ProblemError(
                    503,
                    "query",
                    f"limit `query_seconds` ({seconds:g}) has ended the query: narrow the span with"
                    " `since` and `until`, or the filter with a value that few events have",
                    limit="query_seconds",
                )

        with bounded_by(look):
            for event in self._station.history.scan(filter_, since, until):
                if self._principal.may_read(event):
                    if len(found) == self._limit or size > LARGEST_ANSWER:
                        return {"events": found, "more": True}
                    found.append(msgspec.Raw(encode(event)))
                    size += len(bytes(found[-1]))
        return {"events": found, "more": False}


async def outputs(request: Request) -> Response:
    """What rules have put out, the latest first."""
    principal = principal_of(request, "history")
    given = Parameters(request, ("library", "correlation", "key", "before", "limit"))
    station = station_of(request)
    library, correlation = given.text("library"), given.text("correlation")
    if library is not None:
        libraries_of(request).in_force(library)
    limit = given.number("limit", DEFAULT_LIMIT, 1, station.limits.answers)
    before = given.number("before", 2**62, 0, 2**62)
    key = given.text("key")
    found = await in_turn(
        request, station.journal.outputs, library, correlation, before, limit, key, LARGEST_ANSWER
    )
    is_cut = sum(len(each.body) for each in found) >= LARGEST_ANSWER
    shown = [
        {
            "position": each.seq,
            "library": each.library,
            "correlation": each.correlation,
            "key": each.key,
            "event": msgspec.Raw(each.body),
        }
        for each in found
        if not principal.is_limited or principal.may_read(decode(each.body))
    ]
    return answered({"outputs": shown, "more": len(found) == limit or is_cut})


async def output(request: Request) -> Response:
    """One output, opened to the events that caused it."""
    principal = principal_of(request, "history")
    Parameters(request, ())
    found = _output(request, principal)
    explained = await in_turn(request, opened, station_of(request).journal, found)
    allowed = [each for each in explained.causes if _may_read(principal, each.event)]
    return answered(msgspec.structs.replace(explained, causes=allowed))


async def why(request: Request) -> Response:
    """Which events completed which parts of the rule that has put an output out."""
    principal = principal_of(request, "history")
    principal_of(request, "rules")
    given = Parameters(request, ("events",))
    station = station_of(request)
    found = _output(request, principal)
    name = found.library or ""
    require_subject(principal, name, "to work on library")
    hosted = station.hosted.get(name)
    if hosted is None:
        raise UnknownError(
            f"the output is of library `{name}`, which does not run: enable it, or go by the output"
            " itself, which names the events that are bound"
        )
    events = given.number("events", REREAD, 1, station.limits.replay_events)
    seconds = station.limits.query_seconds
    explained = await in_turn(
        request, why_output, station.journal, hosted.library, found, events, seconds
    )
    allowed = [each for each in explained.causes if _may_read(principal, each.event)]
    return answered(msgspec.structs.replace(explained, causes=allowed))


def _output(request: Request, principal: Principal) -> JournalEntry:
    """The output that a path names."""
    position = request.path_params["position"]
    found = station_of(request).journal.entry(position) if position < 2**62 else None
    if found is None or found.kind != OUTPUT or not principal.may_read(decode(found.body)):
        raise UnknownError(
            f"there is no output at position {position}: `/v1/outputs` lists what there is"
        )
    return found


def _may_read(principal: Principal, event: msgspec.Raw | None) -> bool:
    return event is None or principal.may_read(decode(bytes(event)))
