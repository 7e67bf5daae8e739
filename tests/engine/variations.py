"""Ways to run a scenario that must not change what it puts out.

In comes a scenario and a number that decides where to cut; out goes what was observed, as in
`tests.oracle.agreement`: with snapshots at random places, with tables of few states, with other
rules that come and go, or in a run that explains.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from unittest.mock import patch

import ensue
from ensue.engine import choosing
from ensue.engine.step import StepStream
from ensue.events.event import Event
from ensue.machine.limits import MachineLimits
from tests.oracle.agreement import Observed, events_in_order, started
from tests.oracle.generator import Scenario

OTHER_RULES = """
eventtype Passer { attribute short K; };
Passer correlation Passing (Passer p, Passer q where K > 1) p ; q by K { case true: push q; }
"""
OTHER_RULES_CHANGED = OTHER_RULES.replace("p ; q", "q + p")


def plainly(scenario: Scenario, explain: bool = False) -> Observed:
    library = ensue.parse(scenario.library)
    run = started(scenario, library, explain=explain)
    made = [output for event in events_in_order(scenario, library) for output in run.push(event)]
    return Observed.of([*made, *run.finish(scenario.until)], run.late)


def with_snapshots(scenario: Scenario, seed: int) -> Observed:
    """The run is saved and brought back at random places, the last time by a library read anew."""
    draw = Random(seed)
    library = ensue.parse(scenario.library)
    run = started(scenario, library)
    made: list[Event] = []
    for event in events_in_order(scenario, library):
        if draw.random() < 0.3:
            run = library.resume(run.snapshot())
        made += run.push(event)
    run = ensue.parse(scenario.library).resume(run.snapshot())
    return Observed.of([*made, *run.finish(scenario.until)], run.late)


def with_other_rules(scenario: Scenario, seed: int) -> Observed:
    """Rules that have nothing to do with it are added, replaced and removed at random places."""
    draw = Random(seed)
    library = ensue.parse(scenario.library)
    run = started(scenario, library)
    made: list[Event] = []
    is_there = False
    for event in events_in_order(scenario, library):
        if draw.random() < 0.15:
            if not is_there:
                run.add(OTHER_RULES)
            elif draw.random() < 0.5:
                run.replace(draw.choice([OTHER_RULES, OTHER_RULES_CHANGED, scenario.library]))
            else:
                run.remove("Passing", "Passer")
            is_there = "Passing" in run.text
        made += run.push(event)
    return Observed.of([*made, *run.finish(scenario.until)], run.late)


@contextmanager
def table_states(states: int) -> Iterator[None]:
    """Tables hold no more than so many states, and their moves."""
    limits = MachineLimits(table_states=states, table_moves=states)
    with patch.dict(choosing.ENGINES, step=partial(StepStream, limits=limits)):
        yield
