"""Streams on Spark put out what the definitions say, however they are cut and stopped.

A round has some thirty random libraries, put together into two. One of them is a stream of Spark,
which is stopped on the way and goes on from its checkpoint. For the other, and for a library by
itself, the workers are called as Spark calls them, with rows as columns and as whole events.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.agreement.kinds import MERGED, libraries, trial
from tests.agreement.spark.streams import simulated, streamed
from tests.spark.session import shared_session

SHORT = range(2)


def hunt(seed: int) -> Mapping[str, int]:
    spark, many = shared_session(), libraries(seed)
    real, other = many[seed % 2], many[1 - seed % 2]
    alone = trial(Random(seed).choice([*MERGED]), seed)
    found = [
        simulated(spark, each, seed, whole_events)
        for each in (alone, other)
        for whole_events in (False, True)
    ]
    with TemporaryDirectory(prefix="ensue-streamed-") as folder:
        found.append(streamed(spark, real, seed, Path(folder)))
    wrong = [each for each in found if each is not None]
    if wrong:
        raise AssertionError("\n\n".join(wrong))
    return {"streams": len(found), "libraries": 1 + sum(len(each.parts) for each in many)}
