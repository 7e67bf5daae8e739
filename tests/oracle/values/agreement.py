"""The oracle of values and an engine on one scenario: the same outputs, or a difference to look at.

In comes a scenario; out goes None where both put out the same, attribute for attribute and in the
same order, else a `Difference` that prints the rule, the stream and both answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ensue
from ensue.errors import LibraryError
from ensue.events.cloudevents import decode
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.times import datetime_of

from .model import SECOND, Scenario
from .reading import judge
from .smaller import candidates


@dataclass(frozen=True)
class Difference:
    scenario: Scenario
    expected: list[str]
    given: list[str]

    def __str__(self) -> str:
        expected = "\n".join(f"  {each}" for each in self.expected)
        given = "\n".join(f"  {each}" for each in self.given)
        return f"{self.scenario}\noracle:\n{expected}\nengine:\n{given}"


def as_text(output: dict[str, Any]) -> str:
    """One output on one line, as text so that 1, 1.0 and true are three values."""
    time = output["time"] / SECOND
    rest = {name: each for name, each in output.items() if name not in ("time", "trigger", "type")}
    return f"{output['trigger']}@{time:g} {output['type']} {json.dumps(rest, sort_keys=True)}"


def of_engine(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "time": event.time,
        "data": dict(event.attributes),
        **event.extensions,
    }


def events_of(scenario: Scenario, library: ensue.Library) -> Iterable[Event]:
    for each in scenario.events:
        members = {
            "id": each.id,
            "source": each.source,
            "type": each.type,
            "time": datetime_of(each.time).isoformat().replace("+00:00", "Z"),
            "data": each.data,
        }
        yield conform(decode(json.dumps(members)), library.checked.types)


def run_engine(scenario: Scenario, library: ensue.Library, engine: str, resume: bool) -> list[str]:
    """What an engine puts out; with `resume` the run is saved and taken up after every event."""
    outputs: list[Event] = []
    run = library.start(engine)
    try:
        for event in events_of(scenario, library):
            outputs += run.push(event)
            if resume:
                run = library.resume(run.snapshot(), engine)
        if scenario.until is not None:
            outputs += run.advance(scenario.until)
    except Exception as error:  # a crash is a difference like any other, and is made smaller too
        return [f"{type(error).__name__}: {error}"]
    return [as_text(of_engine(each)) for each in outputs]


def difference(scenario: Scenario, engine: str, resume: bool = False) -> Difference | None:
    library = ensue.parse(str(scenario.model))
    expected = [as_text(each) for each in judge(scenario)]
    given = run_engine(scenario, library, engine, resume)
    return None if expected == given else Difference(scenario, expected, given)


def smallest(found: Difference, engine: str, resume: bool = False) -> Difference:
    """The difference with as much left out as possible."""
    crash = len(found.given) == 1 and "@" not in found.given[0]
    while True:
        for candidate in candidates(found.scenario):
            try:
                again = difference(candidate, engine, resume)
            except LibraryError:
                continue
            if again is not None and (crash or "@" in "".join(again.given) or not again.given):
                found = again
                break
        else:
            return found
