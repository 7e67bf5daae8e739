"""Libraries over HTTP: put with every finding, get, list, versions, roll back, dry run."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.events.times import format_time, parse_time
from ensue.lang.source import Source
from ensue.library import Library
from ensue.machine.analyses.warnings import analysis_warnings
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.problems import diagnostic
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    body_of,
    libraries_of,
    principal_of,
    refused,
    require_subject,
    station_of,
    text_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.station.record.registry import InForce, Version
from ensue.server.station.rules.dry_run import dry_run
from ensue.server.station.station import Station

CHECK_SECONDS = 2.0
"""How long a put looks for warnings that need an analysis."""


def _author(request: Request, name: str) -> Principal:
    principal = principal_of(request, "rules")
    require_subject(principal, name, "to work on library")
    return principal


async def listed(request: Request) -> Response:
    principal = principal_of(request, "rules")
    Parameters(request, ())
    station, libraries = station_of(request), libraries_of(request)
    found = [each for each in station.registry.in_force() if principal.may_have(each.name)]
    return answered([_summary(station, each, libraries.version(each.name)) for each in found])


def _summary(station: Station, in_force: InForce, version: Version) -> dict[str, Any]:
    hosted = station.hosted.get(in_force.name)
    rules = list(hosted.library.correlations.names) if hosted else []
    return {
        "name": in_force.name,
        "version": in_force.version,
        "enabled": in_force.enabled,
        "at": format_time(version.at),
        "author": version.author,
        "note": version.note,
        "rules": rules,
        "outputs": sum(each.outputs for each in hosted.counted.rules.values()) if hosted else 0,
        "refused": hosted.counted.refused if hosted else 0,
        "late": hosted.counted.late if hosted else 0,
    }


async def got(request: Request) -> Response:
    name = request.path_params["name"]
    _author(request, name)
    Parameters(request, ())
    station, libraries = station_of(request), libraries_of(request)
    in_force, version = libraries.in_force(name), libraries.version(name)
    hosted = station.hosted.get(name)
    refusals = list(hosted.refusals) if hosted else []
    return answered(
        {
            **_summary(station, in_force, version),
            "text": version.text,
            "refusals": [
                {"id": each.id, "type": each.type, "time": format_time(each.time),
                 "problems": each.problems}
                for each in refusals
            ],
        }
    )  # fmt: skip


async def put(request: Request) -> Response:
    """Put a text in force. Findings that are no errors come with the answer."""
    name = request.path_params["name"]
    principal = _author(request, name)
    given = Parameters(request, ("note",))
    text = await text_of(request)
    change = await libraries_of(request).put(name, text, principal.name, given.text("note") or "")
    library = await in_turn(request, libraries_of(request).library, name)
    found = await in_turn(request, warnings_of, library, text, name)
    status = 201 if change.is_new and change.version == 1 else 200
    return answered({**msgspec.to_builtins(change), "warnings": found}, status)


def warnings_of(library: Library, text: str, name: str) -> list[dict[str, Any]]:
    """The warnings of the checker and of the analyses, from top to bottom."""
    more = analysis_warnings(library.checked, Source.of(text, name), CHECK_SECONDS)
    found = sorted([*library.warnings, *more], key=lambda each: (each.line, each.column))
    return [diagnostic(each) for each in found]


async def deleted(request: Request) -> Response:
    name = request.path_params["name"]
    principal = _author(request, name)
    Parameters(request, ())
    await libraries_of(request).remove(name, principal.name)
    return Response(status_code=204)


async def versions(request: Request) -> Response:
    name = request.path_params["name"]
    _author(request, name)
    Parameters(request, ())
    libraries = libraries_of(request)
    in_force = libraries.in_force(name)
    return answered(
        [
            {
                "version": each.version,
                "at": format_time(each.at),
                "author": each.author,
                "note": each.note,
                "in_force": each.version == in_force.version,
                "text": each.text,
            }
            for each in station_of(request).registry.versions(name)
        ]
    )


async def enabled(request: Request) -> Response:
    return await _switched(request, True)


async def disabled(request: Request) -> Response:
    return await _switched(request, False)


async def _switched(request: Request, is_on: bool) -> Response:
    name = request.path_params["name"]
    principal = _author(request, name)
    Parameters(request, ())
    return answered(await libraries_of(request).enable(name, is_on, principal.name))


class RollBack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int


async def rolled_back(request: Request) -> Response:
    name = request.path_params["name"]
    principal = _author(request, name)
    Parameters(request, ())
    wanted = await body_of(request, RollBack)
    libraries = libraries_of(request)
    libraries.in_force(name)
    if not 0 < wanted.version < 2**31:
        raise refused(f"`version` is a number from 1 on; given is {wanted.version}")
    return answered(await libraries.roll_back(name, wanted.version, principal.name))


class DryRunOf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is tried: a text, or the version in force; over which span."""

    text: str | None = None
    since: str | None = None
    until: str | None = None


async def tried(request: Request) -> Response:
    """How often a text would have fired over the history, and how that differs."""
    name = request.path_params["name"]
    principal = _author(request, name)
    principal_of(request, "history")
    Parameters(request, ())
    wanted = await body_of(request, DryRunOf)
    station, libraries = station_of(request), libraries_of(request)
    known = {each.name for each in station.registry.in_force()}
    in_force = await in_turn(request, libraries.library, name) if name in known else None
    if wanted.text is not None:
        library = await in_turn(request, station.read_library, wanted.text, name)
    else:
        library = await in_turn(request, libraries.library, name)
        in_force = None
    since, until = _instant(wanted.since, "since"), _instant(wanted.until, "until")
    if principal.is_limited:
        raise refused(
            f"a dry run reads all events, and `{principal.name}` is limited to some subjects"
        )
    await station.caught_up()
    seconds = station.limits.query_seconds
    answer = await in_turn(
        request, dry_run, station.history, library, in_force, since, until, seconds
    )
    return answered(answer)


def _instant(text: str | None, name: str) -> int | None:
    try:
        return None if text is None else parse_time(text)
    except ValueError as error:
        raise refused(f"`{name}`: {error}") from None
