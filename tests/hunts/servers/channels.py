"""Channels under load, alone and linked, lose, double and disorder nothing; their counts add up.

A seed fixes what is done but not how threads take turns: one that has found something may have to
be played several times.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from tests.channel.accounting import balanced
from tests.channel.linked_scenarios import LINKED_SCENARIOS
from tests.channel.scenarios import SCENARIOS
from tests.channel.storms import storm
from tests.hunts.quiet import quiet

SHORT = (31,)


def hunt(seed: int) -> Mapping[str, int]:
    scenarios = (*SCENARIOS, storm, *LINKED_SCENARIOS)
    for scenario in scenarios:
        with quiet("ensue.channel"), balanced():
            try:
                scenario(random.Random(seed))
            except Exception as error:
                error.add_note(f"in {scenario.__name__}")
                raise
    return {"scenarios": len(scenarios)}
