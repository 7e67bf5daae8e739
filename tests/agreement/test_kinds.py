"""Trials are the same for a seed, and most of them put something out."""

from __future__ import annotations

import pytest

from tests.oracle.rare import CORNERS, RareDrawing

from .kinds import KINDS, MERGED, together, trial

FIRING = {"usual": 0.4, "rare": 0.3, "related": 0.5, "chains": 0.2, "alike": 0.4}
"""The least share of trials that put something out; of the other kinds all do."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_always_gives_the_same_trial(kind: str) -> None:
    """A failing seed can be replayed."""
    assert str(trial(kind, 17)) == str(trial(kind, 17))
    assert trial(kind, 17).changes == trial(kind, 17).changes


@pytest.mark.parametrize("kind", KINDS)
def test_most_trials_put_something_out(kind: str) -> None:
    """A generator whose rules never fire would agree with anything."""
    share = FIRING.get(kind, 1.0)
    drawn = [trial(kind, seed) for seed in range(4 if share == 1.0 else 20)]
    judged = [each.expected for each in drawn if each.expected is not None]

    assert len(judged) > 0.8 * len(drawn)
    assert sum(bool(each.outputs) for each in judged) >= share * len(judged)


def test_every_corner_is_gone_into() -> None:
    """A corner that is never drawn would never be tested."""
    assert {corner for seed in range(40) for corner in RareDrawing(seed).corners} == {*CORNERS}


def test_trials_together_are_judged_by_themselves() -> None:
    """What each of them puts out is what it puts out alone, as far as the clock has come."""
    merged = together({kind: range(3) for kind in MERGED})
    judged = merged.judged(merged.by_time, merged.end)
    run = merged.library.start("step")
    outputs = run.push_all(merged.events[place] for place in merged.by_time)
    outputs += run.finish(merged.end)

    found = [each.id for each in outputs]
    expected = [(each.rules, [made["id"] for made in each.outputs]) for each in judged]
    assert len(expected) > 9
    for rules, ids in expected:
        mine = [o.id for o in outputs if o.extensions["correlation"] in rules]
        assert mine == ids
    assert len(found) > 50
