"""The playground: a text and some events in, findings, outputs and reasons out, all at once.

Events are written one a line: as in golden cases (`0 Failed {"user": "ann"}`, seconds, type and
data) or as CloudEvents in JSON. Time is virtual: it stands where the last event puts it, or at
`until`. Nothing is kept, nothing runs on; the definitions are followed, so that reasons are known.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.casefile.notation import read_event_text, read_time
from ensue.engine.run import Run
from ensue.errors import EventError, LibraryError
from ensue.events.cloudevents import decode, encode
from ensue.events.event import Event
from ensue.library import Library
from ensue.server.api.requests.problems import ProblemError, diagnostic
from ensue.server.api.requests.reading import (
    Parameters,
    answered,
    body_of,
    principal_of,
    station_of,
)
from ensue.server.api.requests.turns import in_turn
from ensue.server.api.v1.libraries import warnings_of
from ensue.server.api.v1.rules import drawn
from ensue.server.station.station import Station

MOST_EVENTS: Final = 2_000
MOST_OUTPUTS: Final = 10_000
NEAREST: Final = 3


class Tried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    library: str
    events: str = ""
    until: str | None = None


class LineProblem(msgspec.Struct, frozen=True):
    """A line of the events that cannot be read."""

    line: int
    problems: tuple[str, ...]


async def play(request: Request) -> Response:
    principal_of(request, "rules")
    Parameters(request, ())
    wanted = await body_of(request, Tried)
    station = station_of(request)
    if len(wanted.library.encode()) > station.limits.library_bytes:
        raise ProblemError(
            413, "limit", "the library is larger than limit `library_bytes`", limit="library_bytes"
        )
    if wanted.events.count("\n") > MOST_EVENTS:
        raise ProblemError(
            413,
            "limit",
            f"the playground takes {MOST_EVENTS:,} lines of events: use `ensue run` for more",
        )
    made = await in_turn(request, _played, station, wanted)
    return answered(made)


def _played(station: Station, wanted: Tried) -> dict[str, Any]:
    events, problems = _events(wanted.events)
    try:
        library = station.read_library(wanted.library, "rules")
    except LibraryError as error:
        return {
            "diagnostics": [diagnostic(each) for each in error.diagnostics],
            "problems": problems, "outputs": [], "waiting": [], "machines": [], "late": 0,
            "events": [_shown(each, line) for each, line in events],
        }  # fmt: skip
    run = library.start(explain=True)
    outputs: list[dict[str, Any]] = []
    deadline = time.monotonic() + station.limits.query_seconds
    ordered = sorted(events, key=lambda each: each[0].time)
    for event, line in ordered:
        try:
            ended = _take(run, run.push_iter(event), outputs, deadline)
        except EventError as error:
            problems.append(LineProblem(line, error.problems))
            continue
        if ended is not None:
            problems.append(LineProblem(line, (ended,)))
            break
    else:
        until = _until(wanted.until, problems)
        ended = _take(run, run.finish_iter(until), outputs, deadline)
        if ended is not None:
            problems.append(LineProblem(0, (ended,)))
    return {
        "diagnostics": warnings_of(library, wanted.library, "rules"),
        "problems": problems,
        "events": [_shown(each, line) for each, line in ordered],
        "outputs": outputs,
        "waiting": _waiting(run, library),
        "machines": [{"rule": name, **drawn(library, name)} for name in library.correlations.names],
        "late": run.counts.late,
    }


def _take(
    run: Run, made: Iterator[Event], outputs: list[dict[str, Any]], deadline: float
) -> str | None:
    """Take outputs as they are made; why no more are taken, if a limit is met."""
    for each in made:
        outputs.append(_output(run, each))
        if len(outputs) >= MOST_OUTPUTS:
            return f"the playground shows {MOST_OUTPUTS:,} outputs: use `ensue run` for more"
        if time.monotonic() > deadline:
            break
    return "limit `query_seconds` has ended the run here" if time.monotonic() > deadline else None


def _events(text: str) -> tuple[list[tuple[Event, int]], list[LineProblem]]:
    events: list[tuple[Event, int]] = []
    problems: list[LineProblem] = []
    for number, line in enumerate(text.splitlines(), 1):
        given = line.strip()
        if not given or given.startswith(("#", "//")):
            continue
        try:
            events.append((_event(given, len(events) + 1), number))
        except EventError as error:
            problems.append(LineProblem(number, error.problems))
        except ValueError as error:
            problems.append(LineProblem(number, (str(error),)))
    return events, problems


def _event(text: str, number: int) -> Event:
    if text.startswith("{"):
        return decode(text)
    members = read_event_text(text)
    source = members.get("source", "playground")
    return Event(str(number), source, members["type"], members["time"], members.get("data"))


def _until(text: str | None, problems: list[LineProblem]) -> int | None:
    if text is None or not text.strip():
        return None
    try:
        return read_time(text.strip())
    except ValueError as error:
        problems.append(LineProblem(0, (f"until: {error}",)))
        return None


def _shown(event: Event, line: int) -> dict[str, Any]:
    return {"line": line, "event": msgspec.Raw(encode(event)), "seconds": event.time / 1e6}


def _output(run: Run, output: Event) -> dict[str, Any]:
    reason = run.why(output)
    return {
        "event": msgspec.Raw(encode(output)),
        "seconds": output.time / 1e6,
        "why": str(reason),
    }


def _waiting(run: Run, library: Library) -> list[dict[str, Any]]:
    """For each rule the keys that came nearest to their next output."""
    found: list[dict[str, Any]] = []
    for rule in library.correlations.names:
        nearest = run.nearest(rule, NEAREST) or [run.why(rule)]
        found += [{"rule": rule, "key": each.key, "text": str(each)} for each in nearest]
    return found
