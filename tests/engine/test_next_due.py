"""When a run wants to be told that time has passed."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import ensue
from ensue.engine.run import Run
from ensue.errors import UsageError

from .rules import SECOND, event

EAST = timezone(timedelta(hours=1))

WAITING = """
eventtype A { attribute string k; };
eventtype B { attribute string k; };
eventtype Out {};
Out ecl Waiting (A a, B b) by k
    { repeat { notify { sequential { a, do { timeout(3 s) } unless { b } } } } }
Out correlation Quiet (A a, deadline 10 s d) d { case true: push new Out {}; }
"""


@pytest.fixture(params=["step", "batch", "reference", "explained"])
def run(request: pytest.FixtureRequest) -> Run:
    library = ensue.parse(WAITING)
    if request.param == "explained":
        return library.start(explain=True)
    return library.start(str(request.param))


def test_nothing_is_due_before_the_first_event(run: Run) -> None:
    assert run.next_due() is None


def test_the_next_due_time_is_that_of_the_first_timer(run: Run) -> None:
    run.push(event("A", "a1", 1, k="x"))
    run.push(event("A", "a2", 2, k="y"))

    assert run.next_due() == 4 * SECOND
    assert [each.extensions["partitionkey"] for each in run.advance(4 * SECOND)] == ["x"]
    assert run.next_due() == 5 * SECOND


def test_a_timeout_that_is_called_off_is_no_longer_due(run: Run) -> None:
    run.push(event("A", "a1", 1, k="x"))
    run.push(event("B", "b1", 2, k="x"))

    assert run.next_due() == 11 * SECOND


def test_what_waits_to_be_put_in_order_is_due_when_its_lateness_is_over() -> None:
    run = ensue.parse(WAITING).start("step", lateness="5 s")
    run.push(event("A", "a1", 1, k="x"))

    assert run.next_due() == 6 * SECOND
    assert run.advance(6 * SECOND) == []
    assert run.next_due() == 9 * SECOND
    assert len(run.advance(9 * SECOND)) == 1


def test_an_advance_before_the_due_time_brings_nothing_about(run: Run) -> None:
    run.push(event("A", "a1", 1, k="x"))
    due = run.next_due()
    assert due is not None

    assert run.advance(due - 1) == []
    assert run.next_due() == due


@pytest.mark.parametrize(
    "time", [4 * SECOND, "1970-01-01T00:00:04Z", datetime(1970, 1, 1, 1, 0, 4, tzinfo=EAST)]
)
def test_a_time_may_be_given_in_three_ways(run: Run, time: int | str | datetime) -> None:
    run.push(event("A", "a1", 1, k="x"))

    assert [each.time for each in run.advance(time)] == [4 * SECOND]


@pytest.mark.parametrize("time", [4.5, True, "soon", datetime(1970, 1, 1)])
def test_what_is_no_time_is_refused_and_the_run_goes_on(run: Run, time: Any) -> None:
    run.push(event("A", "a1", 1, k="x"))

    with pytest.raises(UsageError):
        run.advance(time)
    assert len(run.advance(4 * SECOND)) == 1
