"""Versions of a library over HTTP: listed, one with its text, and what differs between two.

A difference is in lines, and in rules: which keep their state, change, come and go. It is asked for
of two versions, or of a text or values that are not put yet; a refused change carries it too.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.errors import LibraryError
from ensue.events.times import format_time
from ensue.lang.expanding.rewriting import text_with_values
from ensue.library import Library
from ensue.server.access.tokens import Principal
from ensue.server.api.requests.conditions import quoted, tagged
from ensue.server.api.requests.problems import diagnostic
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    body_of,
    libraries_of,
    principal_of,
    require_subject,
    station_of,
    text_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.station.record.registry import Version
from ensue.server.station.rules.differences import RuleEffects, rule_effects, text_difference
from ensue.server.station.rules.libraries import LAST_VERSION, Edit, Libraries
from ensue.server.station.station import Station

GivenAsJson = dict[str, bool | int | float | str]
"""Values of parameters in a body; a text is read as the type of its parameter."""


def author_of(request: Request, name: str) -> Principal:
    """The caller, who is allowed to work on a library."""
    principal = principal_of(request, "rules")
    require_subject(principal, name, "to work on library")
    return principal


def _shown(version: Version) -> dict[str, Any]:
    return {
        "version": version.version,
        "at": format_time(version.at),
        "author": version.author,
        "note": version.note,
    }


async def versions(request: Request) -> Response:
    name = request.path_params["name"]
    author_of(request, name)
    given = Parameters(request, ("limit", "before"))
    limit = given.number("limit", LAST_VERSION, 1, LAST_VERSION)
    before = given.number("before", LAST_VERSION, 1, LAST_VERSION)
    in_force = libraries_of(request).in_force(name)
    found = [each for each in station_of(request).registry.versions(name) if each.version < before]
    return answered(
        [
            {**_shown(each), "in_force": each.version == in_force.version, "text": each.text}
            for each in found[:limit]
        ]
    )


async def version(request: Request) -> Response:
    name = request.path_params["name"]
    author_of(request, name)
    Parameters(request, ())
    libraries = libraries_of(request)
    in_force = libraries.in_force(name)
    found = libraries.version(name, request.path_params["version"])
    is_in_force = found.version == in_force.version
    return answered({**_shown(found), "in_force": is_in_force, "text": found.text})


async def between(request: Request) -> Response:
    """What differs between two versions; the later one is the one in force if it is left out."""
    name = request.path_params["name"]
    author_of(request, name)
    given = Parameters(request, ("from", "to"))
    libraries = libraries_of(request)
    latest = libraries.in_force(name).version
    to = given.number("to", latest, 1, LAST_VERSION)
    old = libraries.version(name, given.number("from", max(1, to - 1), 1, LAST_VERSION))
    new = libraries.version(name, to)
    return answered(await in_turn(request, _between, station_of(request), old, new))


def _between(station: Station, old: Version, new: Version) -> dict[str, Any]:
    libraries: list[Library] = []
    findings: list[dict[str, Any]] = []
    for each in (old, new):
        try:
            libraries.append(station.read_library(each.text, each.name))
        except LibraryError as error:
            findings += map(diagnostic, error.diagnostics)
    effects = None if findings else rule_effects(*libraries)
    return _difference(old, new, effects, findings)


async def proposed(request: Request) -> Response:
    """What a text would change if it were put; nothing is changed."""
    name = request.path_params["name"]
    author_of(request, name)
    Parameters(request, ())
    text = await text_of(request)
    libraries = libraries_of(request)
    old = None if libraries.tag(name) is None else libraries.version(name)
    return await _would_change(request, old, text)


async def proposed_values(request: Request) -> Response:
    """What other values of parameters would change if they were set; nothing is changed."""
    name = request.path_params["name"]
    author_of(request, name)
    Parameters(request, ())
    values = await body_of(request, GivenAsJson)
    old = libraries_of(request).version(name)
    text = await in_turn(request, text_with_values, old.text, values)
    return await _would_change(request, old, text)


async def _would_change(request: Request, old: Version | None, text: str) -> Response:
    name, libraries = request.path_params["name"], libraries_of(request)
    tag = libraries.tag(name)
    answer = answered(await in_turn(request, _proposed, libraries, name, old, text))
    return answer if tag is None else tagged(request, answer, tag)


def _proposed(libraries: Libraries, name: str, old: Version | None, text: str) -> dict[str, Any]:
    effects: RuleEffects | None = None
    findings: list[dict[str, Any]] = []
    try:
        effects = libraries.effects(name, text)
    except LibraryError as error:
        findings = [diagnostic(each) for each in error.diagnostics]
    return _difference(old, text, effects, findings)


def _difference(
    old: Version | None,
    new: Version | str,
    effects: RuleEffects | None,
    findings: list[dict[str, Any]],
) -> dict[str, Any]:
    text, name = (new, "proposed") if isinstance(new, str) else (new.text, _label(new))
    before = "nothing" if old is None else _label(old)
    lines = text_difference("" if old is None else old.text, text, before, name)
    return {
        "from": None if old is None else _shown(old),
        "to": None if isinstance(new, str) else _shown(new),
        **msgspec.to_builtins(lines),
        "rules": None if effects is None else msgspec.to_builtins(effects),
        "diagnostics": findings,
    }


def _label(version: Version) -> str:
    return f"version {version.version}"


def what_changed(libraries: Libraries, edit: Edit) -> dict[str, Any]:
    """What stands under a name now, and how it came there since the author of an edit has seen it.

    `difference` is from what was seen to what stands; none where either is not there any more.
    """
    tag = libraries.tag(edit.name)
    if tag is None:
        return {"etag": None, "current": None, "since": [], "difference": None}
    current, found = libraries.in_force(edit.name), libraries.version(edit.name)
    seen = libraries.seen(edit.name, edit.expected.tags or ())
    since = [] if seen is None else libraries.versions_after(seen)
    return {
        "etag": quoted(tag),
        "current": {
            **_shown(found), "enabled": current.enabled, "etag": quoted(tag), "text": found.text
        },
        "since": [_shown(each) for each in since],
        "difference": None if seen is None else _difference(seen, found, None, []),
    }  # fmt: skip
