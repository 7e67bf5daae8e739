"""Libraries over HTTP: put with every finding, get, list, roll back, delete, dry run.

Every change may name the tag of what its author has seen (`If-Match`); where others have changed
that meanwhile, the answer is 412 with who did what, and the difference in lines.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.events.times import format_time, parse_time
from ensue.lang.expanding.parameters import type_name
from ensue.lang.source import Source
from ensue.library import Library
from ensue.machine.analyses.warnings import analysis_warnings
from ensue.server.api.requests.conditions import expected_of, quoted, tagged
from ensue.server.api.requests.problems import ProblemError, diagnostic
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    body_of,
    libraries_of,
    principal_of,
    refused,
    station_of,
    text_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.api.v1.versions import GivenAsJson, author_of, what_changed
from ensue.server.station.preconditions import ChangedError
from ensue.server.station.record.registry import InForce, Version
from ensue.server.station.rules.dry_run import dry_run
from ensue.server.station.rules.libraries import LONGEST_NOTE, Edit, LibraryChange, tag_of
from ensue.server.station.station import Station

CHECK_SECONDS: Final = 2.0
"""How long a put looks for warnings that need an analysis."""

T = TypeVar("T")


def _edit(request: Request, note: str = "") -> Edit:
    name = request.path_params["name"]
    principal = author_of(request, name)
    if len(note) > LONGEST_NOTE:
        raise refused(
            f"the note has {len(note):,} characters, and {LONGEST_NOTE:,} are allowed: say it"
            " shorter"
        )
    return Edit(name, principal.name, note, expected_of(request))


async def _changed(request: Request, edit: Edit, change: Awaitable[T]) -> T:
    """What became of a change, or the refusal with what others changed."""
    try:
        return await change
    except ChangedError as error:
        told = await in_turn(request, what_changed, libraries_of(request), edit)
        tag = told.pop("etag")
        headers = {} if tag is None else {"ETag": str(tag)}
        raise ProblemError(412, "changed", str(error), headers, **told) from None


def _answered(request: Request, change: LibraryChange, status: int = 200, **more: Any) -> Response:
    tag = libraries_of(request).tag(change.name)
    answer = answered({**msgspec.to_builtins(change), **more}, status)
    return answer if tag is None else tagged(request, answer, tag)


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
        "etag": quoted(tag_of(in_force, version)),
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
    author_of(request, name)
    Parameters(request, ())
    station, libraries = station_of(request), libraries_of(request)
    in_force, version = libraries.in_force(name), libraries.version(name)
    hosted = station.hosted.get(name)
    refusals = list(hosted.refusals) if hosted else []
    answer = answered(
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
    return tagged(request, answer, tag_of(in_force, version))


async def put(request: Request) -> Response:
    """Put a text in force. Findings that are no errors come with the answer."""
    given = Parameters(request, ("note",))
    edit = _edit(request, given.text("note") or "")
    text = await text_of(request)
    libraries = libraries_of(request)
    change = await _changed(request, edit, libraries.put(edit, text))
    library = await in_turn(request, libraries.library, edit.name)
    found = await in_turn(request, warnings_of, library, text, edit.name)
    status = 201 if change.is_new and change.version == 1 else 200
    return _answered(request, change, status, warnings=found)


def warnings_of(library: Library, text: str, name: str) -> list[dict[str, Any]]:
    """The warnings of the checker and of the analyses, from top to bottom."""
    more = analysis_warnings(library.checked, Source.of(text, name), CHECK_SECONDS)
    found = sorted([*library.warnings, *more], key=lambda each: (each.line, each.column))
    return [diagnostic(each) for each in found]


async def parameters(request: Request) -> Response:
    """The parameters that a library declares, with their values, now and as the text was put."""
    name = request.path_params["name"]
    author_of(request, name)
    Parameters(request, ())
    libraries = libraries_of(request)
    library = await in_turn(request, libraries.library, name)
    defaults = await in_turn(request, libraries.defaults, name)
    now = library.parameters
    return answered(
        {
            each.name: {
                "type": type_name(each),
                "default": defaults.get(each.name, now[each.name]),
                "value": now[each.name],
            }
            for each in library.checked.parameters
        }
    )


async def parameters_set(request: Request) -> Response:
    """Put other values of parameters in force; rules that mean the same keep their state."""
    given = Parameters(request, ("note",))
    edit = _edit(request, given.text("note") or "")
    values = await body_of(request, GivenAsJson)
    libraries = libraries_of(request)
    change = await _changed(request, edit, libraries.set_parameters(edit, values))
    return _answered(request, change)


async def deleted(request: Request) -> Response:
    given = Parameters(request, ("note",))
    edit = _edit(request, given.text("note") or "")
    await _changed(request, edit, libraries_of(request).remove(edit))
    return Response(status_code=204)


async def enabled(request: Request) -> Response:
    return await _switched(request, True)


async def disabled(request: Request) -> Response:
    return await _switched(request, False)


async def _switched(request: Request, is_on: bool) -> Response:
    given = Parameters(request, ("note",))
    edit = _edit(request, given.text("note") or "")
    change = await _changed(request, edit, libraries_of(request).enable(edit, is_on))
    return _answered(request, change)


class RollBack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    note: str = ""


async def rolled_back(request: Request) -> Response:
    author_of(request, request.path_params["name"])
    Parameters(request, ())
    wanted = await body_of(request, RollBack)
    edit = _edit(request, wanted.note)
    libraries = libraries_of(request)
    libraries.in_force(edit.name)
    if not 0 < wanted.version < 2**31:
        raise refused(f"`version` is a number from 1 on; given is {wanted.version}")
    change = await _changed(request, edit, libraries.roll_back(edit, wanted.version))
    return _answered(request, change)


class DryRunOf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is tried: a text, or the version in force; over which span."""

    text: str | None = None
    since: str | None = None
    until: str | None = None


async def tried(request: Request) -> Response:
    """How often a text would have fired over the history, and how that differs."""
    name = request.path_params["name"]
    principal = author_of(request, name)
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
