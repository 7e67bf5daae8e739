"""Jobs of Spark put out what the definitions say, on random libraries of every kind.

A round is one job: some thirty random libraries put together into two, each over one stream, and
one for itself. The way changes with the seed: as rows that Python reads, as columns that SQL reads,
in order or not, as a list of events.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tests.agreement.kinds import MERGED, libraries, trial
from tests.agreement.spark.jobs import WAYS, differences
from tests.spark.session import shared_session

SHORT = range(3)
"""The suite has golden cases as lists of events."""


def hunt(seed: int) -> Mapping[str, int]:
    way = WAYS[seed % len(WAYS)]
    alone, many = trial(Random(seed).choice([*MERGED]), seed), libraries(seed)
    if seed in SHORT:
        many = many[:1]
    found = differences(shared_session(), [alone, *many], way)
    if found:
        raise AssertionError("\n\n".join(found))
    return {"libraries": 1 + sum(len(each.parts) for each in many)}
