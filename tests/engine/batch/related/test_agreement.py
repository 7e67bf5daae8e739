"""Rules that relate events agree with the definitions, however a stream is cut and moved.

Random rules of the kind `related`, most of which run in compiled loops, over events some of which
lack values: in odd batches, with snapshots, from engine to engine, with everything sorted out after
every batch, and with rooms of a single place.
"""

from __future__ import annotations

import pytest

import ensue
from ensue.engine.sizes import small_sizes
from ensue.events.event import Event
from tests.engine.beside_reference import Way, follow
from tests.engine.random_rules import events, library_text

SEEDS = 30


def in_batches(seed: int, saved: float = 0.3) -> None:
    """Compares a run in odd batches with the definitions."""
    library = ensue.parse(library_text(seed, "related", 6))
    way = Way(in_batches=True, saved=saved)
    follow(library, "related", events(seed, 120), seed, "batch", way)


def test_random_rules_in_odd_batches_with_snapshots_between_them() -> None:
    for seed in range(SEEDS):
        in_batches(seed)


def test_nothing_is_lost_where_everything_outgrows_its_room() -> None:
    """Readings are sorted out after every batch, triggers and values have room for one."""
    for seed in range(SEEDS, 3 * SEEDS):
        with small_sizes(seed if seed % 2 else None):
            in_batches(seed, saved=0.0)


@pytest.mark.usefixtures("everything_small")
def test_a_match_that_was_forgotten_asks_for_no_reading() -> None:
    run = ensue.parse(
        "eventtype B { attribute long n; } eventtype E {} eventtype Out { attribute long n; }"
        " Out correlation R (B b, E e) b ; e bind last within 5 ms having b.n >= first(b.n)"
        " { case true: push new Out { n = count(b) }; }"
    ).start("batch")
    run.push(Event("1", "s", "B", 0, {"n": 7}))
    run.push(Event("2", "s", "E", 1500, {}))

    assert run.push(Event("3", "s", "E", 5000, {})) == []


def test_random_rules_move_between_engines_and_come_and_go() -> None:
    for seed in range(3 * SEEDS, 4 * SEEDS):
        library = ensue.parse(library_text(seed, "related", 6))
        way = Way(moved=0.2, changed=0.05)
        follow(library, "related", events(seed, 60), seed, "step", way)
