"""Rules that run together put out what each of them puts out by itself, in `step` and in `batch`.

One suite for every form of rule, every cut into batches, and whatever may happen to a run: random
libraries (`random_rules`) are held against the reference engine (`beside_reference`).
"""

from __future__ import annotations

import pytest

import ensue
from ensue.engine.sizes import small_sizes
from tests.engine.beside_reference import Way, follow
from tests.engine.random_rules import GROUPED_KINDS, KINDS, events, library_text
from tests.engine.variations import table_states

RULES = 8
CUTS = {
    "step, event by event": ("step", False),
    "batch, event by event": ("batch", False),
    "batch, in batches": ("batch", True),
}
HAPPENINGS = {
    "undisturbed": {},
    "saved": {"saved": 0.3},
    "moved": {"moved": 0.2},
    "changed": {"changed": 0.15},
    "all": {"saved": 0.15, "moved": 0.2, "changed": 0.15},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize("cut", CUTS)
def test_rules_agree_with_the_reference(cut: str, happening: str, kind: str) -> None:
    engine, in_batches = CUTS[cut]
    chances = HAPPENINGS[happening]
    seed = 20 + len(HAPPENINGS) * list(CUTS).index(cut) + list(HAPPENINGS).index(happening)
    library = ensue.parse(library_text(seed, kind, RULES))
    given = events(seed, 120 if in_batches else 60)

    with small_sizes(seed):
        _, happened = follow(library, kind, given, seed, engine, Way(in_batches, **chances))

    assert happened.keys() >= chances.keys()
    assert happened["outputs"] > 0


@pytest.mark.parametrize("kind", GROUPED_KINDS)
def test_groups_whose_tables_hold_few_states_agree_with_the_reference(kind: str) -> None:
    library = ensue.parse(library_text(3, kind, RULES))
    with small_sizes(), table_states(2):
        follow(library, kind, events(3, 60), 3, "step", Way(saved=0.1))
