"""The batch engine puts out what the oracle does, however its input is cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.single.correlation import ColumnCorrelation
from ensue.events.arrow import events_of, table_of
from ensue.events.event import Event
from tests.engine.beside_reference import cut
from tests.oracle.agreement import (
    Observed,
    as_text,
    events_in_order,
    observe_oracle,
    read_events,
    started,
)
from tests.oracle.filters import TooManyError
from tests.oracle.generator import Scenario, scenario
from tests.oracle.ways import outputs_table

SEEDS = 300
SEEDS_A_TEST = 50


def judged(first: int) -> Iterator[tuple[int, Scenario, ensue.Library, Observed]]:
    """Scenarios from a seed on, each with what the oracle says; none that is too large for it."""
    for seed in range(first, first + SEEDS_A_TEST):
        drawn = scenario(seed)
        library = ensue.parse(drawn.library)
        try:
            expected = observe_oracle(drawn, library)
        except TooManyError:
            continue
        yield seed, drawn, library, expected


def moved(engine: BatchEngine, library: ensue.Library) -> BatchEngine:
    """The same engine in another process, as it were."""
    fresh = BatchEngine(library.checked)
    fresh.restore(engine.snapshot())
    return fresh


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_events_in_odd_batches_with_snapshots_between_them(first: int) -> None:
    """Every attribute of every output is the same, in the same order, on every seed."""
    for seed, drawn, library, expected in judged(first):
        if drawn.lateness is not None:
            continue
        random = Random(seed)
        engine = BatchEngine(library.checked)
        made: list[Event] = []
        for piece in cut(events_in_order(drawn, library), random):
            made += engine.read_all(piece)
            if random.random() < 0.3:
                engine = moved(engine, library)
        if drawn.until is not None:
            made += engine.advance(drawn.until)

        assert Observed.of(made, []).outputs == expected.outputs, f"\n{drawn}\n{engine.paths}"


@pytest.mark.parametrize("first", range(0, SEEDS // 2, SEEDS_A_TEST))
def test_a_table_that_grows_past_its_budget_is_left_and_nothing_changes(first: int) -> None:
    """From then on the machine is stepped, from where its table had come."""
    for seed, drawn, library, expected in judged(first):
        if drawn.lateness is not None:
            continue
        engine = BatchEngine(library.checked)
        for running in engine.correlations.values():
            if isinstance(running, ColumnCorrelation):
                running.table_states = 3
                if running.patience is not None and seed % 2:
                    # Even within a batch.
                    running.patience.free = seed % 7
        made: list[Event] = []
        for piece in cut(events_in_order(drawn, library), Random(seed)):
            made += engine.read_all(piece)
        if drawn.until is not None:
            made += engine.advance(drawn.until)

        assert Observed.of(made, []).outputs == expected.outputs, f"\n{drawn}"


@pytest.mark.parametrize("first", range(0, SEEDS // 2, SEEDS_A_TEST))
def test_runs_on_the_batch_engine_go_on_from_their_snapshots(first: int) -> None:
    """With a lateness too: what waits to be put in order is part of a run's snapshot."""
    for seed, drawn, library, expected in judged(first):
        run = started(drawn, library, "batch")
        made: list[Event] = []
        for piece in cut(events_in_order(drawn, library), Random(seed)):
            made += run.push_all(piece)
            run = library.resume(run.snapshot())
        made += run.finish(drawn.until)

        assert Observed.of(made, run.late) == expected, f"\n{drawn}"


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_tables_of_events_give_tables_of_the_same_outputs(first: int) -> None:
    """An Arrow table in, not sorted; the table that comes out holds the expected outputs."""
    for seed in range(first, first + SEEDS_A_TEST):
        drawn = scenario(seed)
        if drawn.lateness is not None:
            continue
        library = ensue.parse(drawn.library)
        types = library.checked.types
        events = read_events(drawn, library)
        table = table_of(events, types)
        reference = library.start("reference")
        expected = [
            output
            for event in sorted(events_of(table, types), key=lambda event: event.time)
            for output in reference.push(event)
        ]
        expected += reference.finish(drawn.until)
        engine = BatchEngine(library.checked)
        tables = [engine.push_batch(table), engine.finish(drawn.until)]

        found = [as_text(each) for out in tables for each in events_of(out, types)]
        wanted = [
            as_text(each) for each in events_of(outputs_table(expected, library.checked), types)
        ]
        assert found == wanted, f"\n{drawn}\n{engine.paths}"
