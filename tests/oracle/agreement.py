"""Whether an engine agrees with the oracle on a scenario.

In comes a scenario; out goes None where both put out the same events, attribute for attribute and
in the same order, else a `Difference` that prints everything that is needed to look into it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import ensue
from ensue.engine.run import Run, run_bounded
from ensue.events.cloudevents import decode, encode
from ensue.events.conformance import conform
from ensue.events.event import Event

from . import oracle
from .generator import Scenario


@dataclass(frozen=True)
class Observed:
    """What came out: the outputs, the events that came too late, or what was raised."""

    outputs: list[str]
    late: list[str]
    raised: str = ""

    @classmethod
    def of(cls, outputs: Iterable[Event], late: Iterable[Event]) -> Observed:
        # As text, so that 1, 1.0 and true are three values.
        return cls([as_text(each) for each in outputs], [as_text(each) for each in late])

    def __str__(self) -> str:
        late = [f"late: {each}" for each in self.late]
        return "\n".join(f"  {each}" for each in [*self.outputs, *late, self.raised] if each)


def as_text(event: Event) -> str:
    return json.dumps(json.loads(encode(event)), sort_keys=True)


@dataclass(frozen=True)
class Difference:
    scenario: Scenario
    expected: Observed
    given: Observed

    def __str__(self) -> str:
        return f"{self.scenario}\noracle:\n{self.expected}\nengine:\n{self.given}"


def read_events(scenario: Scenario, library: ensue.Library) -> list[Event]:
    types = library.checked.types
    return [conform(decode(json.dumps(each)), types) for each in scenario.events]


def events_in_order(scenario: Scenario, library: ensue.Library) -> list[Event]:
    """The events as a run is to read them: sorted, unless the run puts them in order itself."""
    events = read_events(scenario, library)
    return sorted(events, key=lambda each: each.time) if scenario.lateness is None else events


def started(
    scenario: Scenario, library: ensue.Library, engine: str = "step", explain: bool = False
) -> Run:
    return library.start(engine, timedelta(microseconds=scenario.lateness or 0), explain=explain)


def observe_oracle(scenario: Scenario, library: ensue.Library) -> Observed:
    result = oracle.run(
        library.checked.tree,
        library.checked.types,
        read_events(scenario, library),
        lateness=scenario.lateness,
        until=scenario.until,
    )
    return Observed.of(result.outputs, result.late)


def observe_engine(scenario: Scenario, library: ensue.Library, engine: str) -> Observed:
    run = started(scenario, library, engine)
    events = read_events(scenario, library)
    try:
        outputs = list(
            run_bounded(run, events, sort=scenario.lateness is None, until=scenario.until)
        )
    except Exception as error:  # a crash is a difference like any other, and is made smaller too
        return Observed([], [], f"{type(error).__name__}: {error}")
    return Observed.of(outputs, run.late)


def difference(scenario: Scenario, engine: str = "reference") -> Difference | None:
    library = ensue.parse(scenario.library)
    expected = observe_oracle(scenario, library)
    given = observe_engine(scenario, library, engine)
    return None if expected == given else Difference(scenario, expected, given)


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
