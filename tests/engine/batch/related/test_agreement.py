"""Rules that relate events agree with the definitions, however a stream is cut and moved.

Random rules of the kind `related`, most of which run in compiled loops, over events some of which
lack values: in odd batches, with snapshots, from engine to engine, with everything sorted out after
every batch, and with rooms of a single place.
"""

from __future__ import annotations

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.related import correlation as related
from ensue.engine.batch.related import stretch_registers
from ensue.engine.batch.related.correlation import RelatedCorrelation
from ensue.events.event import Event
from tests.engine.beside_reference import Way, follow
from tests.engine.random_rules import events, library_text

SEEDS = 30


def in_batches(seed: int, saved: float = 0.3) -> int:
    """Compares a run in odd batches with the definitions; how many rules ran in loops."""
    library = ensue.parse(library_text(seed, "related", 6))
    way = Way(in_batches=True, saved=saved)
    run, _ = follow(library, "related", events(seed, 120), seed, "batch", way)
    assert isinstance(run._engine, BatchEngine)
    return sum(isinstance(each, RelatedCorrelation) for each in run._engine.correlations.values())


def test_random_rules_in_odd_batches_with_snapshots_between_them() -> None:
    assert sum(in_batches(seed) for seed in range(SEEDS)) > 3 * SEEDS


def test_nothing_is_lost_where_readings_are_sorted_out_after_every_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(related, "SMALLEST_CLEARING", 0)

    for seed in [*range(SEEDS, 2 * SEEDS), *range(4 * SEEDS, 5 * SEEDS)]:
        in_batches(seed, saved=0.0)


def test_a_match_that_was_forgotten_asks_for_no_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(related, "SMALLEST_CLEARING", 0)
    run = ensue.parse(
        "eventtype B { attribute long n; } eventtype E {} eventtype Out { attribute long n; }"
        " Out correlation R (B b, E e) b ; e bind last within 5 ms having b.n >= first(b.n)"
        " { case true: push new Out { n = count(b) }; }"
    ).start("batch")
    run.push(Event("1", "s", "B", 0, {"n": 7}))
    run.push(Event("2", "s", "E", 1500, {}))

    assert run.push(Event("3", "s", "E", 5000, {})) == []


def test_triggers_and_values_outgrow_their_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretch_registers, "_FEWEST_TRIGGERS", 1)
    monkeypatch.setattr(stretch_registers, "_SMALLEST_TABLE", 32)

    for seed in range(2 * SEEDS, 3 * SEEDS):
        in_batches(seed)


def test_random_rules_move_between_engines_and_come_and_go() -> None:
    for seed in range(3 * SEEDS, 4 * SEEDS):
        library = ensue.parse(library_text(seed, "related", 6))
        way = Way(moved=0.2, changed=0.05)
        follow(library, "related", events(seed, 60), seed, "step", way)
