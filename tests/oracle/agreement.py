"""Whether an engine agrees with the oracle on a scenario.

In comes a scenario; out goes None where both put out the same events, attribute for attribute and
in the same order, else a `Difference` that prints everything that is needed to look into it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import ensue
from ensue.events.cloudevents import decode, encode
from ensue.events.times import datetime_of

from . import oracle
from .generator import Scenario


@dataclass(frozen=True)
class Difference:
    scenario: Scenario
    expected: list[dict[str, Any]]
    given: list[dict[str, Any]]

    def __str__(self) -> str:
        lines = [str(self.scenario), "oracle:"]
        lines += [f"  {json.dumps(each)}" for each in self.expected]
        lines += ["engine:", *(f"  {json.dumps(each)}" for each in self.given)]
        return "\n".join(lines)


def expected_outputs(scenario: Scenario, library: ensue.Library) -> list[dict[str, Any]]:
    events = [decode(json.dumps(each)) for each in scenario.events]
    result = oracle.run(
        library.checked.tree,
        library.checked.types,
        events,
        lateness=scenario.lateness,
        until=scenario.until,
    )
    return [json.loads(encode(each)) for each in result.outputs]


def given_outputs(scenario: Scenario, library: ensue.Library, engine: str) -> list[dict[str, Any]]:
    events = [decode(json.dumps(each)) for each in scenario.events]
    lateness = None
    if scenario.lateness is not None:
        lateness = timedelta(microseconds=scenario.lateness)
    until = None if scenario.until is None else datetime_of(scenario.until)
    outputs = library.run(events, engine=engine, lateness=lateness, until=until)
    return [json.loads(encode(each)) for each in outputs]


def difference(scenario: Scenario, engine: str = "reference") -> Difference | None:
    library = ensue.parse(scenario.library)
    expected = expected_outputs(scenario, library)
    try:
        given = given_outputs(scenario, library, engine)
    except Exception as error:
        given = [{"raised": f"{type(error).__name__}: {error}"}]
    # Compared as text, so that 1, 1.0 and true are three values.
    same = json.dumps(expected, sort_keys=True) == json.dumps(given, sort_keys=True)
    return None if same else Difference(scenario, expected, given)


def smaller(found: Difference, engine: str = "reference") -> Difference:
    """The difference with as many events dropped as possible, and without `until` if it can be."""
    while True:
        for candidate in candidates(found.scenario):
            if (again := difference(candidate, engine)) is not None:
                found = again
                break
        else:
            return found


def candidates(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario with less: without its end, its lateness, half of its events, one of them."""
    if scenario.until is not None:
        yield replace(scenario, until=None)
    if scenario.lateness is not None:
        yield replace(scenario, lateness=None)
    events = scenario.events
    size = len(events) // 2
    while size:
        for start in range(0, len(events), size):
            yield replace(scenario, events=events[:start] + events[start + size :])
        size //= 2
