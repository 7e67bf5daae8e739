"""Engines put out what the definitions say, on random libraries of every kind, in every way.

A round is one trial of one kind. The engines run it undisturbed, and then in a few of the other
ways: in pieces, saved and brought back, moved from engine to engine, while rules change, with sizes
at which engines change how they work as small as they can be, over tables, as lines, over several
sites (`tests.agreement`). Kinds whose trials are quick come more often.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tests.agreement.comparing import EVERY_WAY, compare
from tests.agreement.kinds import GROUPED, trial

OFTEN = {"usual": 6, "rare": 6, "related": 12, "chains": 8, "alike": 3, "together": 1}
WHEEL = [*(kind for kind, times in OFTEN.items() for _ in range(times)), *GROUPED]
SHORT = range(2 * len(WHEEL))
ALWAYS = ("reference", "step", "batch")
OTHER_WAYS = 4


def hunt(seed: int) -> Mapping[str, int]:
    kind = WHEEL[seed % len(WHEEL)]
    others = Random(seed).sample([way for way in EVERY_WAY if way not in ALWAYS], OTHER_WAYS)
    try:
        return compare(trial(kind, seed), [*ALWAYS, *others])
    except AssertionError as error:
        error.add_note(f"in every way: python -m tests.agreement {kind} {seed}")
        raise
