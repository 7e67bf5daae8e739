"""Rules that relate events agree with the definitions, however a stream is cut and moved.

Random rules of the kind `related`, most of which run in compiled loops, over events some of which
lack values: in odd batches, with snapshots, from engine to engine, with everything sorted out after
every batch, and with rooms of a single place.
"""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.related import correlation as related
from ensue.engine.batch.related import counting
from ensue.engine.batch.related.correlation import RelatedCorrelation
from ensue.events.event import Event
from tests.engine.batch.test_agreement import cut, moved
from tests.engine.random_rules import events, expected_of, library_text
from tests.oracle.agreement import as_text

SEEDS = 30


def library_of(seed: int) -> ensue.Library:
    return ensue.parse(library_text(seed, "related", 6))


def in_batches(seed: int, moves: float = 0.3) -> int:
    """Compares a run in odd batches with the definitions; how many rules ran in loops."""
    library, given, random = library_of(seed), events(seed, 120, with_reals=True), Random(seed)
    until = given[-1].time + random.choice([0, 1000, 20_000])
    engine = BatchEngine(library.checked)
    found: list[str] = []
    for piece in cut(given, random):
        found += [as_text(each) for each in engine.read_all(piece)]
        if random.random() < moves:
            engine = moved(engine, library)
    found += [as_text(each) for each in engine.advance(until)]
    assert found == expected_of(library, given, until), seed
    return sum(isinstance(each, RelatedCorrelation) for each in engine.correlations.values())


def test_random_rules_in_odd_batches_with_snapshots_between_them() -> None:
    assert sum(in_batches(seed) for seed in range(SEEDS)) > 3 * SEEDS


def test_nothing_is_lost_where_readings_are_sorted_out_after_every_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(related, "SMALLEST_CLEARING", 0)

    for seed in range(SEEDS, 2 * SEEDS):
        in_batches(seed, moves=0.0)


def test_triggers_and_values_outgrow_their_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_FEWEST_TRIGGERS", 1)
    monkeypatch.setattr(counting, "_SMALLEST_TABLE", 32)

    for seed in range(2 * SEEDS, 3 * SEEDS):
        in_batches(seed)


def test_random_rules_put_out_the_same_while_they_move_between_engines() -> None:
    for seed in range(3 * SEEDS, 4 * SEEDS):
        library, given, random = library_of(seed), events(seed, 80, with_reals=True), Random(seed)
        run, engine = library.start("step"), "step"
        made: list[Event] = []
        for event in given:
            if random.random() < 0.2:
                engine = "batch" if engine == "step" else "step"
                run = library.resume(run.snapshot(), engine=engine)
            made += run.push(event)
        until = given[-1].time + 9000
        found = [as_text(each) for each in [*made, *run.finish(until)]]

        assert found == expected_of(library, given, until), seed


def test_a_rule_stays_itself_when_others_come_and_go() -> None:
    for seed in range(4 * SEEDS, 4 * SEEDS + 8):
        text, given = library_text(seed, "related", 3), events(seed, 60, with_reals=True)
        run = ensue.parse(text).start("batch")
        made: list[Event] = []
        for number, event in enumerate(given):
            if number == 20:
                run.add("Found correlation More (T a) a having count(a) > 1 { }")
            if number == 40:
                run.remove("More")
            made += run.push(event)
        until = given[-1].time
        found = [as_text(each) for each in [*made, *run.finish(until)]]

        assert found == expected_of(ensue.parse(text), given, until), seed
