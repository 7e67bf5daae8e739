"""Snapshots that are resumed with another engine than the one they were taken on."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.errors import SnapshotError
from ensue.events.event import Event
from tests.oracle.agreement import Observed, observe_oracle
from tests.oracle.generator import Scenario, scenario

from .rules import LIBRARY, SECOND, login
from .variations import events_of, started

CANNOT = "cannot move to another engine"


def moved_about(drawn: Scenario, seed: int) -> tuple[Observed, int]:
    """The run goes on with the other engine at random places; says too how often it did."""
    draw = Random(seed)
    library = ensue.parse(drawn.library)
    run = started(drawn, library)
    engine, moves = "step", 0
    made: list[Event] = []
    for event in events_of(drawn, library):
        if draw.random() < 0.4:
            other = "batch" if engine == "step" else "step"
            try:
                run = library.resume(run.snapshot(), engine=other)
                engine, moves = other, moves + 1
            except SnapshotError as error:
                if CANNOT not in str(error):
                    raise
        made += run.push(event)
    return Observed.of([*made, *run.finish(drawn.until)], run.late), moves


def test_random_rules_put_out_the_same_while_they_move_between_engines() -> None:
    moves = 0
    for seed in range(40_000, 40_040):
        drawn = scenario(seed)
        expected = observe_oracle(drawn, ensue.parse(drawn.library))
        found, times = moved_about(drawn, seed)

        assert found == expected, drawn
        moves += times
    assert moves > 40


@pytest.mark.parametrize("engine", ["step", "batch", "reference"])
def test_a_history_is_resumed_with_any_engine(engine: str) -> None:
    """It holds the events themselves."""
    library = ensue.parse(LIBRARY)
    run = library.start("reference")
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 2, "eve", False))
    resumed = library.resume(run.snapshot(), engine=engine)

    (made,) = resumed.push(login("e3", 3, "eve", True))
    assert made.extensions["causes"] == "e2,e3"
    assert resumed.counts.events == 3


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_a_state_cannot_become_a_history(engine: str) -> None:
    library = ensue.parse(LIBRARY)

    with pytest.raises(SnapshotError, match="resume it with `step` or `batch`"):
        library.resume(library.start(engine).snapshot(), engine="reference")


def test_timers_in_columns_stay_where_they_are() -> None:
    library = ensue.parse(
        "eventtype A {}; eventtype Out {};\n"
        "Out correlation Ticking (A a, every 2 s t) a ; t { case true: push new Out {}; }"
    )
    run = library.start("step")
    run.push(Event("e1", "s", "A", SECOND, {}))

    with pytest.raises(SnapshotError, match="`Ticking` cannot move to another engine"):
        library.resume(run.snapshot(), engine="batch")


def test_an_engine_that_is_not_there_is_named() -> None:
    library = ensue.parse(LIBRARY)

    with pytest.raises(ensue.errors.UsageError, match="there is no engine `stp`"):
        library.resume(library.start().snapshot(), engine="stp")
