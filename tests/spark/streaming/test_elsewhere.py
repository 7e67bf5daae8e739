"""Streams run where executors are other processes, and through Spark Connect: four micro-batches
into a file sink, with what went wrong and the figures of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.elsewhere import EXECUTORS, READINGS, SESSIONS, Elsewhere

from .sensors import expected, found


@pytest.mark.parametrize("session", SESSIONS)
def test_a_stream_puts_out_the_same_elsewhere(
    elsewhere: Callable[[str], Elsewhere], session: str
) -> None:
    """A session elsewhere is seconds in the making, and its executors die and are started again."""
    told = elsewhere(session).stream

    assert found(told["rows"]) == expected(READINGS)
    assert sorted(told["aside"], key=str) == [["late", "late"], [None, "rejected"]]
    check_figures(told["figures"])


def test_executors_that_die_in_the_middle_of_a_stream_change_nothing(
    elsewhere: Callable[[str], Elsewhere],
) -> None:
    seen = elsewhere(EXECUTORS)

    # The third piece was read, and the second of the outputs made, by an executor that died of it.
    assert seen.has_seen_die("stream-before-3", "stream-after-2")
    assert found(seen.stream["after deaths"]) == expected(READINGS)
    check_figures(seen.stream["figures after deaths"])


def check_figures(figures: list[dict[str, Any]]) -> None:
    """What was done twice is told once."""
    assert sum(each["events"] for each in figures) == 43
    assert sum(each["late"] for each in figures) == 1
    assert sum(each["rejected"] for each in figures) == 1
    counts = {
        rule: sum(each["rules"].get(rule, {}).get("outputs", 0) for each in figures)
        for rule in ("Jump", "Silence", "Extremes")
    }
    assert counts == {rule: sum(name == rule for name, *_ in expected(READINGS)) for rule in counts}
