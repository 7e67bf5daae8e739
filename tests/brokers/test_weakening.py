"""What brokers ask their neighbours for holds wherever the filter does."""

from __future__ import annotations

import pytest

from ensue.brokers.weakening import needs_of
from ensue.history import History
from ensue.subscriptions import Filter

EVENT = {"id": "1", "source": "s", "type": "T", "time": "2024-05-06T07:00:00Z"}
TERM = "start AFTER(10 s) (a = 1)"


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (f"({TERM} AND x > 5) OR y = 1", {"y": 1}),
        (f"y = 1 OR ({TERM} AND x > 5)", {"y": 1}),
        (f"NOT ({TERM} AND x > 5)", {}),
        (f"NOT ({TERM}) AND y = 1", {"y": 1}),
        (f"y = 1 AND (NOT ({TERM}) OR x > 5)", {"y": 1}),
        (f"({TERM}) XOR y = 1", {"y": 1}),
    ],
)
def test_a_term_that_does_not_hold_brings_no_error_out(text: str, data: dict[str, int]) -> None:
    """Where a term decides, what stands beside it is not evaluated, and may be an error."""
    wanted = Filter.parse(text)
    with History.open("memory:") as history:
        assert history.matches(wanted, {**EVENT, "data": data})

    content = needs_of(wanted)[0]

    assert content.matches({**EVENT, "data": data})


def test_what_every_match_must_meet_is_asked_for() -> None:
    wanted = Filter.parse(f"x > 5 AND {TERM} AND (y = 1 OR {TERM})")

    content = needs_of(wanted)[0]

    assert content.matches({**EVENT, "data": {"x": 6}})
    assert not content.matches({**EVENT, "data": {"x": 5}})
