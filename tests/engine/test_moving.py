"""Snapshots that are resumed with another engine than the one they were taken on."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.errors import SnapshotError
from ensue.events.event import Event

from .rules import LIBRARY, SECOND, login


@pytest.mark.parametrize("engine", ["step", "batch", "reference"])
def test_a_history_is_resumed_with_any_engine(engine: str) -> None:
    """It holds the events themselves."""
    library = ensue.parse(LIBRARY)
    run = library.start("reference")
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 2, "eve", False))
    resumed = library.resume(run.snapshot(), engine=engine)

    (made,) = resumed.push(login("e3", 3, "eve", True))
    assert made.extensions["causes"] == "e2,e3"
    assert resumed.counts.events == 3


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_a_state_cannot_become_a_history(engine: str) -> None:
    library = ensue.parse(LIBRARY)

    with pytest.raises(SnapshotError, match="resume it with `step` or `batch`"):
        library.resume(library.start(engine).snapshot(), engine="reference")


TIMED = """
eventtype A { attribute string k; }; eventtype B : A {};
eventtype Out { attribute timestamp at; attribute string k; };
Out correlation Ticking (A a, every 2 s t) a ; t by k
    { case true: push new Out { at = t.time, k = a.k }; }
Out correlation Slow (A a, B b, deadline 5 s d) (a + b) | late:(d ; a) within 9 s by k
    { case true: push new Out { at = d.time, k = b.k }; }
Out ecl Waiting (A a, B b) by k
    { repeat { notify { sequential { a, do { timeout(3 s) } unless { b } } } } }
Out ecl Once (A a, every 4 s t) by k { sequential { a, t, a } }
"""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", [("step", "batch"), ("batch", "step")])
def test_timers_move_with_what_is_due_and_what_is_bound(order: tuple[str, str], seed: int) -> None:
    """Ports and timeouts, with a window and without, bound firings and finished expressions."""
    library, draw = ensue.parse(TIMED), Random(seed)
    run, judge = library.start(order[0]), library.start("reference")
    for number in range(60):
        time = number * SECOND + draw.randrange(3) * SECOND // 2
        event = Event(f"e{number}", "s", draw.choice("AAB"), time, {"k": draw.choice("xyz")})
        if draw.random() < 0.3:
            order = order[::-1]
            run = library.resume(run.snapshot(), engine=order[0])

        assert run.next_due() == judge.next_due()
        assert run.push(event) == judge.push(event)
    assert run.finish(90 * SECOND) == judge.finish(90 * SECOND)


SILENT = """
eventtype A { attribute string k; }; eventtype Out { attribute string k; };
Out correlation Silent (A a) a ; timeout(3 s) unless a by k
    { case true: push new Out { k = a.k }; }
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_timer_that_is_due_before_what_is_settled_moves(seed: int) -> None:
    """With a lateness the order may be settled beyond a timer that no event has fired yet."""
    library, draw = ensue.parse(SILENT), Random(seed)
    run, judge = library.start("step", lateness="2 s"), library.start("step", lateness="2 s")
    order = ("step", "batch")
    time = 0
    for number in range(80):
        time += draw.randrange(SECOND)
        late = draw.choice([0, 0, SECOND])
        event = Event(f"e{number}", "s", "A", time - late, {"k": draw.choice("uvwxyz")})
        if draw.random() < 0.3:
            order = order[::-1]
            run = library.resume(run.snapshot(), engine=order[0])

        assert run.push(event) == judge.push(event)
    assert run.finish(200 * SECOND) == judge.finish(200 * SECOND)


def test_an_engine_that_is_not_there_is_named() -> None:
    library = ensue.parse(LIBRARY)

    with pytest.raises(ensue.errors.UsageError, match="there is no engine `stp`"):
        library.resume(library.start().snapshot(), engine="stp")
