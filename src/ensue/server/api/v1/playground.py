"""The playground: a text and some events in, findings, outputs and reasons out, all at once.

Events are written one a line: as in golden cases (`0 Failed {"user": "ann"}`, seconds, type and
data) or as CloudEvents in JSON. Time is virtual: it stands where the last event puts it, or at
`until`. Nothing is kept, nothing runs on; the definitions are followed, so that reasons are known.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.casefile.notation import read_event_text, read_time
from ensue.engine.explain.progress import Done
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
    answer = await in_turn(request, _played, station, wanted)
    return answered(answer)


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
    ordered = sorted(events, key=lambda each: each[0].time)
    run = library.start(explain=True)
    outcome = _Outcome(run, [event for event, _ in ordered], station.limits.query_seconds)
    for event, line in ordered:
        try:
            ended = outcome.take(run.push_iter(event))
        except EventError as error:
            problems.append(LineProblem(line, error.problems))
            continue
        if ended is not None:
            problems.append(LineProblem(line, (ended,)))
            break
    else:
        until = _until(wanted.until, problems)
        ended = outcome.take(run.finish_iter(until))
        if ended is not None:
            problems.append(LineProblem(0, (ended,)))
    return {
        "diagnostics": warnings_of(library, wanted.library, "rules"),
        "problems": problems,
        "events": [_shown(each, line) for each, line in ordered],
        "outputs": outcome.outputs,
        "waiting": _waiting(run, library),
        "machines": [{"rule": name, **drawn(library, name)} for name in library.correlations.names],
        "late": run.counts.late,
    }


class CompletedPart(msgspec.Struct, frozen=True):
    """What completed a part of a rule: an event, an earlier output, or the clock.

    `number` is the place of the event or the output in the answer, from 0 on.
    """

    part: str
    kind: str
    number: int | None
    seconds: float


class Output(msgspec.Struct, frozen=True):
    """`why` says in words what `causes` list."""

    event: msgspec.Raw
    seconds: float
    why: str
    causes: list[CompletedPart]


class _Outcome:
    """The outputs of a run as they are made, each with its reasons, within the limits."""

    def __init__(self, run: Run, events: Sequence[Event], seconds: float) -> None:
        self._run = run
        self._deadline = time.monotonic() + seconds
        self._places: dict[tuple[object, ...], tuple[str, int | None]] = {
            _identity(each): ("event", at) for at, each in enumerate(events)
        }
        self.outputs: list[Output] = []

    def take(self, given: Iterator[Event]) -> str | None:
        """Take outputs as they are made; why no more are taken, if a limit is met."""
        for each in given:
            self._take(each)
            if len(self.outputs) >= MOST_OUTPUTS:
                return f"the playground shows {MOST_OUTPUTS:,} outputs: use `ensue run` for more"
            if time.monotonic() > self._deadline:
                break
        is_late = time.monotonic() > self._deadline
        return "limit `query_seconds` has ended the run here" if is_late else None

    def _take(self, output: Event) -> None:
        reason = self._run.why(output)
        causes = [self._cause(each) for each in (*reason.causes, *reason.bound)]
        self._places[_identity(output)] = "output", len(self.outputs)
        self.outputs.append(
            Output(msgspec.Raw(encode(output)), output.time / 1e6, str(reason), causes)
        )

    def _cause(self, done: Done) -> CompletedPart:
        event = done.reading.event
        kind, number = "clock", None
        if event is not None:
            kind, number = self._places.get(_identity(event), ("event", None))
        return CompletedPart(done.part, kind, number, done.time / 1e6)


def _identity(event: Event) -> tuple[object, ...]:
    # What `push a` sends on has the id of its event.
    extensions = event.extensions
    return (
        event.id,
        event.source,
        event.type,
        event.time,
        extensions.get("correlation"),
        extensions.get("partitionkey"),
    )


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


def _waiting(run: Run, library: Library) -> list[dict[str, Any]]:
    """For each rule the keys that came nearest to their next output."""
    found: list[dict[str, Any]] = []
    for rule in library.correlations.names:
        nearest = run.nearest(rule, NEAREST) or [run.why(rule)]
        found += [{"rule": rule, "key": each.key, "text": str(each)} for each in nearest]
    return found
