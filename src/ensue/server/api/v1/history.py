"""`/v1/history` and `/v1/outputs`: what was published, and what followed with its causes."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.events.cloudevents import decode
from ensue.history.asking.newest import Place
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    libraries_of,
    principal_of,
    read_filter,
    refused,
    require_subject,
    station_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.api.v1.looking import EventSpan, HistoryQuery, OutputQuery, OutputsOf
from ensue.server.station.entries import OUTPUT, JournalEntry
from ensue.server.station.rules.libraries import UnknownError
from ensue.server.station.rules.reasons import opened, why_output

DEFAULT_LIMIT = 100
REREAD = 20_000
"""Events before an output that are read again to tell why it came."""
LONGEST_SEARCH: Final = 1_000
PLACE: Final = re.compile(r"(-?[0-9]{1,19})-([0-9]{1,18})")
"""A place in the history, as `next` gives it: a time and a number."""


async def history(request: Request) -> Response:
    """Published events that match a filter, in the order of their times or the latest first."""
    principal = principal_of(request, "history")
    given = Parameters(request, ("filter", "since", "until", "limit", "order", "search", "before"))
    station = station_of(request)
    filter_ = await read_filter(request, principal, given.text("filter"))
    limit = given.number("limit", DEFAULT_LIMIT, 1, station.limits.answers)
    span = EventSpan(given.instant("since"), given.instant("until"), _searched(given))
    before = _place(given.text("before"))
    order = given.text("order") or ("time" if before is None else "latest")
    if order not in ("time", "latest"):
        raise refused(f"`order` is `time` or `latest`; given is `{order[:60]}`")
    if order == "time" and (before is not None or span.text is not None):
        raise refused("`before` and `search` go with `order=latest`, and the order is `time`")
    await station.caught_up()
    query = HistoryQuery(station, principal, limit)
    answer = query.latest if order == "latest" else query.in_order
    return answered(await in_turn(request, answer, filter_, span, before))


def _searched(given: Parameters) -> str | None:
    """A text to search for; none is searched for if it is empty."""
    text = given.text("search") or None
    if text is not None and len(text) > LONGEST_SEARCH:
        raise refused(f"`search` has {len(text):,} characters, and {LONGEST_SEARCH} are allowed")
    return text


def _place(text: str | None) -> Place | None:
    if text is None:
        return None
    found = PLACE.fullmatch(text)
    if found is None or abs(int(found[1])) >= 2**63:
        raise refused("`before` is the `next` of an earlier answer")
    return Place(int(found[1]), int(found[2]))


async def outputs(request: Request) -> Response:
    """What rules have put out, the latest first."""
    principal = principal_of(request, "history")
    given = Parameters(
        request,
        ("library", "correlation", "key", "since", "until", "search", "before", "limit"),
    )
    station = station_of(request)
    library, correlation = given.text("library"), given.text("correlation")
    if library is not None:
        libraries_of(request).in_force(library)
    limit = given.number("limit", DEFAULT_LIMIT, 1, station.limits.answers)
    before = given.number("before", 2**62, 0, 2**62)
    wanted = OutputsOf(library, correlation, given.text("key"))
    span = EventSpan(given.instant("since"), given.instant("until"), _searched(given))
    query = OutputQuery(station, principal, limit)
    return answered(await in_turn(request, query.answer, wanted, span, before))


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
