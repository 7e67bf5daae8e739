"""`/v1/history` and `/v1/outputs`: what was published, and what followed with its causes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.problems import ProblemError
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    libraries_of,
    principal_of,
    station_of,
)
from ensue.server.station.entries import OUTPUT
from ensue.server.station.rules.libraries import UnknownError
from ensue.server.station.rules.reasons import opened
from ensue.server.station.station import Station
from ensue.subscriptions import Filter

DEFAULT_LIMIT = 100


async def history(request: Request) -> Response:
    """Published events that match a filter, in the order of their times."""
    principal = principal_of(request, "history")
    given = Parameters(request, ("filter", "since", "until", "limit"))
    station = station_of(request)
    text = given.text("filter")
    filter_ = Filter.parse(text) if text else None
    limit = given.number("limit", DEFAULT_LIMIT, 1, station.limits.answers)
    since, until = given.instant("since"), given.instant("until")
    await station.caught_up()
    query = _Query(station, principal, limit)
    return answered(await asyncio.to_thread(query.answer, filter_, since, until))


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
        for event in self._scanned(filter_, since, until):
            if event is not None:
                if len(found) == self._limit:
                    return {"events": found, "more": True}
                found.append(msgspec.Raw(encode(event)))
            if time.monotonic() > deadline:
                raise ProblemError(
                    503,
                    "query",
                    f"limit `query_seconds` ({seconds:g}) has ended the query: narrow the span with"
                    " `since` and `until`, or the filter with a value that few events have",
                    limit="query_seconds",
                )
        return {"events": found, "more": False}

    def _scanned(
        self, filter_: Filter | None, since: int | None, until: int | None
    ) -> Iterator[Event | None]:
        for event in self._station.history.scan(filter_, since, until):
            yield event if self._principal.may_read(event) else None


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
    found = await asyncio.to_thread(
        station.journal.outputs, library, correlation, before, limit, key
    )
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
    return answered({"outputs": shown, "more": len(found) == limit})


async def output(request: Request) -> Response:
    """One output, opened to the events that caused it."""
    principal = principal_of(request, "history")
    Parameters(request, ())
    station = station_of(request)
    position = request.path_params["position"]
    found = station.journal.entry(position) if position < 2**62 else None
    if found is None or found.kind != OUTPUT or not principal.may_read(decode(found.body)):
        raise UnknownError(
            f"there is no output at position {position}: `/v1/outputs` lists what there is"
        )
    made = await asyncio.to_thread(opened, station.journal, found)
    allowed = [
        each
        for each in made.causes
        if each.event is None or principal.may_read(decode(bytes(each.event)))
    ]
    return answered(msgspec.structs.replace(made, causes=allowed))
