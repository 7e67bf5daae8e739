"""`/v1/types` and `/v1/ontology`: what events look like, and what is known of their values."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.conditions import tagged
from ensue.server.api.requests.reading import Parameters, answered, principal_of, station_of
from ensue.server.station.preconditions import digest
from ensue.server.station.rules.libraries import UnknownError
from ensue.server.station.station import Station


async def types(request: Request) -> Response:
    """The event types that libraries declare, with their attributes."""
    principal = principal_of(request)
    Parameters(request, ())
    found: dict[str, dict[str, Any]] = {}
    for hosted in list(station_of(request).hosted.values()):
        system = hosted.library.checked.types
        for each in hosted.library.types:
            if not principal.may_have(each.name):
                continue
            entry = found.setdefault(each.name, {"name": each.name, "libraries": {}})
            attributes = {name: str(kind) for name, kind in system.attributes(each.name).items()}
            derived = {
                name: {"type": str(own.type), "value": own.value}
                for name, own in system.derived(each.name).items()
            }
            entry["libraries"][hosted.name] = {
                "base": each.parent,
                "attributes": attributes,
                "derived": derived,
            }
    return answered(sorted(found.values(), key=lambda each: str(each["name"])))


async def ontology(request: Request) -> Response:
    """The ontology that filters and libraries may ask."""
    principal_of(request)
    Parameters(request, ())
    return _ontology_answered(request)


def _ontology_answered(request: Request) -> Response:
    answer = answered(_ontology(station_of(request)))
    return tagged(request, answer, digest(bytes(answer.body)))


def _ontology(station: Station) -> dict[str, Any]:
    known = station.ontology
    return {
        "loaded": known is not None,
        "concepts": 0 if known is None else len(known),
        "generation": 0 if known is None else known.generation,
        "prefixes": {} if known is None else known.prefixes,
        "files": station.settings.ontology.files,
    }


async def ontology_read(request: Request) -> Response:
    """Read the files of the ontology again."""
    principal = principal_of(request, "admin")
    Parameters(request, ())
    station = station_of(request)
    if station.ontology is None:
        raise UnknownError("the server has no ontology: name its files in `[ontology] files`")
    await asyncio.to_thread(station.ontology.reload)
    await station.audited(principal.name, "reload", "ontology")
    return _ontology_answered(request)
