"""Rules that run, over HTTP: what they count, their machines with live keys, and why not."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.errors import LimitError
from ensue.events.times import format_time
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.printer import print_library
from ensue.lang.syntax import LibraryTree
from ensue.library import Library
from ensue.machine.drawing import to_svg
from ensue.machine.prepared import plan_in
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    channel_of,
    libraries_of,
    principal_of,
    require_subject,
    station_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.station.rules.hosted import Hosted
from ensue.server.station.rules.libraries import UnknownError
from ensue.server.station.rules.reasons import why_not
from ensue.server.station.station import Station

DRAWN_TRANSITIONS: Final = 200
"""Up to which size a machine is drawn; a larger one is no picture any more."""


async def listed(request: Request) -> Response:
    """All rules that run, with what they have put out."""
    principal = principal_of(request, "rules")
    Parameters(request, ())
    station = station_of(request)
    found = [
        _counted(station, hosted, rule)
        for hosted in list(station.hosted.values())
        if principal.may_have(hosted.name)
        for rule in hosted.library.correlations.names
    ]
    return answered(found)


def _counted(station: Station, hosted: Hosted, rule: str) -> dict[str, Any]:
    counted = hosted.counted.rules.get(rule)
    last = None
    if counted is not None and counted.last_time is not None:
        last = {
            "position": counted.last_seq,
            "time": format_time(counted.last_time),
            "key": counted.last_key,
            "id": counted.last_id,
        }
    return {
        "library": hosted.name,
        "rule": rule,
        "version": hosted.version,
        "outputs": counted.outputs if counted else 0,
        "rate": round(station.figures.rate((hosted.name, rule)), 3),
        "without_key": hosted.run.counts.without_key.get(rule, 0),
        "last": last,
    }


def _found(request: Request) -> tuple[Hosted, str]:
    principal = principal_of(request, "rules")
    name, rule = request.path_params["name"], request.path_params["rule"]
    require_subject(principal, name, "to work on library")
    libraries_of(request).in_force(name)
    hosted = station_of(request).hosted.get(name)
    if hosted is None:
        raise UnknownError(f"library `{name}` is disabled, and no rule of it runs: enable it")
    names = hosted.library.correlations.names
    if rule not in names:
        raise UnknownError(f"library `{name}` has no rule `{rule}`; {did_you_mean(rule, names)}")
    return hosted, rule


async def one(request: Request) -> Response:
    """One rule: its text, its machine as SVG, and how many keys stand in each state."""
    hosted, rule = _found(request)
    Parameters(request, ())
    station = station_of(request)
    states = await channel_of(request).occupancies.of(station, hosted)
    about = await in_turn(request, drawn, hosted.library, rule)
    state = states.get(rule)
    return Response(
        msgspec.json.encode(
            {
                **_counted(station, hosted, rule),
                **about,
                "keys": state.keys if state else 0,
                "states": {f"s{number}": count for number, count in state.states.items()}
                if state
                else {},
                "some_keys": state.shown if state else [],
            }
        ),
        media_type="application/json",
    )


def drawn(library: Library, rule: str) -> dict[str, Any]:
    """The text, the form and the drawing of a rule."""
    correlation = library.correlations[rule]
    definition = next(
        each for each in library.checked.tree.definitions
        if each.name == rule and type(each) is type(correlation)
    )  # fmt: skip
    text = print_library(LibraryTree((definition,)))
    try:
        plan = plan_in(library.checked, correlation)
    except LimitError as error:
        return {"text": text, "form": "memory", "why_form": str(error), "svg": None}
    svg = None
    if plan.machine is not None and len(plan.machine.transitions) <= DRAWN_TRANSITIONS:
        svg = to_svg(plan.machine, rule)
    return {"text": text, "form": plan.form, "why_form": plan.why, "svg": svg}


async def why(request: Request) -> Response:
    """Why a rule has not fired: for a key, or for the keys that came nearest."""
    principal_of(request, "history")
    hosted, rule = _found(request)
    given = Parameters(request, ("key", "events"))
    station = station_of(request)
    events = given.number("events", 20_000, 1, station.limits.replay_events)
    found = await in_turn(
        request,
        why_not,
        station.journal,
        hosted.library,
        rule,
        given.text("key"),
        events,
        station.limits.query_seconds,
    )
    return answered(found)
