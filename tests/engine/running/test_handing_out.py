"""Outputs that a caller asks for one by one: what is not taken comes with the next call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ensue
from ensue.engine.run import Run
from ensue.errors import UsageError
from ensue.events.event import Event

ENGINES = ("reference", "step", "batch")
LIBRARY = ensue.parse(
    """
    eventtype A {};
    eventtype Out {};
    Out correlation Twice (A a) a { case true: push new Out {}; push new Out {}; }
    """
)


def event(number: int) -> Event:
    return Event(str(number), "test", "A", number, {})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "last",
    [
        lambda run: run.push(event(3)),
        lambda run: run.push_all([event(3)]),
        lambda run: list(run.push_iter(event(3))),
        lambda run: run.push(event(3)) + run.advance(9),
    ],
)
def test_outputs_that_no_timer_made_wait_too(
    engine: str, last: Callable[[Run], list[Event]]
) -> None:
    plain, run = LIBRARY.start(engine), LIBRARY.start(engine)
    expected = [output for n in range(4) for output in plain.push(event(n))]
    first = next(run.push_iter(event(0)))
    run.push_iter(event(1))
    with pytest.raises(UsageError, match="still to be taken"):
        run.snapshot()
    third = next(run.push_iter(event(2)))

    assert [first, third, *last(run)] == expected
    assert run.counts == plain.counts
    assert run.push(event(10)) == plain.push(event(10))


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_outputs_of_very_many_calls_may_wait(engine: str) -> None:
    run = LIBRARY.start(engine)
    for number in range(30_000):
        run.push_iter(event(number))

    assert sum(1 for _ in run.advance_iter(30_000)) == 60_000
