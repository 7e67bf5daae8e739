"""`/v1/filter`: which attributes a filter names, and whether any event has them.

A filter on an attribute that no event has matches nothing, and is no mistake: the next event may
have it. So it is told, beside what was found, to who asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ensue.events.cloudevents import decode
from ensue.events.event import CONTEXT, Event
from ensue.lang.diagnostics import close_match
from ensue.lang.expressions.names import names_in
from ensue.lang.expressions.scopes import MISSING, EventScope
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    principal_of,
    read_filter,
    station_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.station.entries import KIND_NAMES
from ensue.server.station.station import Station
from ensue.subscriptions import Filter

LOOKED_AT: Final = 1_000
"""How many of the latest events and outputs are looked at."""


async def names(request: Request) -> Response:
    """The attributes of a filter: whether a type declares each, and how many events have it."""
    principal = principal_of(request, "subscribe")
    given = Parameters(request, ("filter",))
    filter_ = await read_filter(request, principal, given.text("filter"))
    station = station_of(request)
    return answered(await in_turn(request, _names, station, principal, filter_))


def _names(station: Station, principal: Principal, filter_: Filter | None) -> dict[str, Any]:
    events = list(_latest(station, principal))
    declared = {
        name
        for hosted in list(station.hosted.values())
        for each in hosted.library.types
        if principal.may_have(each.name)
        for name in hosted.library.checked.types.attributes(each.name)
    }
    known = {*declared, *CONTEXT, *(name for each in events for name in _has(each))}
    wanted = dict.fromkeys(() if filter_ is None else names_in(filter_.expression))
    return {
        "attributes": [_attribute(each, declared, known, events) for each in wanted],
        "events": len(events),
    }


def _latest(station: Station, principal: Principal) -> Iterator[Event]:
    journal = station.journal
    last = journal.last
    first = max(journal.first, last - LOOKED_AT + 1)
    for entry in journal.page(first - 1, last):
        if entry.kind in KIND_NAMES:
            event = decode(entry.body)
            if principal.may_read(event):
                yield event


def _has(event: Event) -> Iterator[str]:
    yield from event.extensions
    if isinstance(event.data, Mapping):
        yield from event.data


def _attribute(
    parts: tuple[str, ...], declared: set[str], known: set[str], events: Sequence[Event]
) -> dict[str, Any]:
    name = ".".join(parts)
    is_declared = parts[0] in declared or name.lower() in CONTEXT
    seen = sum(EventScope(each).lookup(parts) is not MISSING for each in events)
    hint = None if is_declared or seen else close_match(name, known)
    return {"name": name, "declared": is_declared, "seen": seen, "hint": hint}
