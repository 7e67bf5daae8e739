"""Libraries whose predicates ask a history, in every engine that runs them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ensue
from ensue.errors import EventError, SnapshotError, UsageError
from ensue.events.event import Event
from ensue.history import History

LOGINS = """
eventtype Login { attribute string user; attribute boolean failed; }
eventtype Alarm { attribute string user; }

Alarm correlation Burst (
    Login a where failed = TRUE AND start AFTER(2 s) (
        failed = TRUE AND start AFTER(2 s) (failed = TRUE)))
    burst:(a)
{
    case burst: push new Alarm { user = a.user };
}

Alarm correlation Repeated (Login a where user FILTER(=, 3) (failed = TRUE), Login b)
    again:(a ; b) by user
{
    case again: push new Alarm { user = b.user };
}

Alarm correlation Echo (
    Alarm e from outside, Burst, Repeated where NOT start AFTER(10 s, 3 TIMES) (failed = TRUE)
) once:(e)
{
    case once: push e;
}
"""


def login(number: int, second: float, user: str, failed: bool) -> Event:
    data = {"user": user, "failed": failed}
    return Event(f"e{number}", "test", "Login", int(second * 1_000_000), data)


def test_three_failures_in_a_row_are_found() -> None:
    library = ensue.parse(LOGINS)
    with History.open("memory:") as history:
        run = library.start(history=history)
        made = [
            [each.extensions["correlation"] for each in run.push(login(n, second, "ann", True))]
            for n, second in enumerate((0, 1, 3.5, 4, 5, 5.5))
        ]

        assert ["Burst" in each for each in made] == [False, False, False, False, True, True]
        assert len(history) == 6


@pytest.mark.parametrize("seed", range(6))
def test_engines_agree_and_so_does_a_run_that_was_saved(seed: int) -> None:
    library = ensue.parse(LOGINS)
    events = list(_logins(Random(seed), 60))
    outputs = {}
    for engine in ("reference", "step", "batch", "auto"):
        with History.open("memory:") as history:
            run = library.start(engine, history=history)
            outputs[engine] = [_shown(each) for event in events for each in run.push(event)]
    with History.open("memory:") as history:
        run = library.start(history=history)
        made = [_shown(each) for event in events[:30] for each in run.push(event)]
        run = library.resume(run.snapshot(), history=history)
        made += [_shown(each) for event in events[30:] for each in run.push(event)]
    with History.open("memory:") as history:
        bounded = [_shown(each) for each in library.run(events[::-1], history=history)]

    assert outputs["reference"]
    assert outputs["reference"] == outputs["step"] == outputs["batch"] == outputs["auto"] == made
    assert sorted(bounded) == sorted(made)


def test_events_are_asked_in_the_order_of_their_times_and_late_ones_are_kept() -> None:
    library = ensue.parse(LOGINS)
    with History.open("memory:") as history:
        run = library.start(lateness="5 s", history=history)
        for number, second in enumerate((2.0, 0.0, 1.0)):
            assert run.push(login(number, second, "ann", True)) == []
        made = run.advance(20_000_000)
        assert [each.extensions["trigger"] for each in made if each.type == "Alarm"][:1] == ["e0"]
        run.push(login(9, 3.0, "ann", True))
        assert [each.id for each in run.late] == ["e9"]
        assert len(history) == 4


def test_what_a_run_with_a_history_cannot_do_is_said() -> None:
    library = ensue.parse(LOGINS)
    with History.open("memory:") as history:
        with pytest.raises(UsageError, match="cannot explain"):
            library.start(explain=True, history=history)
        with pytest.raises(SnapshotError, match="step"):
            library.start("reference", history=history).snapshot()


def test_an_event_that_a_history_cannot_keep_never_came() -> None:
    library = ensue.parse(LOGINS)
    with History.open("memory:") as history:
        run = library.start(history=history)
        bad = {"id": "1", "source": "s", "type": "Login", "time": "2024-01-01T00:00:00Z"}
        with pytest.raises(EventError, match="phase"):
            run.push({**bad, "phase": "never", "data": {"user": "ann", "failed": True}})
        assert run.counts.events == len(history) == 0


def test_without_a_history_temporal_terms_hold_for_nothing() -> None:
    run = ensue.parse(LOGINS).start()
    made = [run.push(login(n, n / 10, "ann", True)) for n in range(5)]
    assert all(each.extensions["correlation"] != "Burst" for outputs in made for each in outputs)


def _logins(random: Random, count: int) -> Any:
    time = 0.0
    for number in range(count):
        time += random.choice((0.5, 1, 1.5, 2.5))
        yield login(number, time, random.choice(("ann", "bob")), random.random() < 0.7)


def _shown(event: Event) -> tuple[Any, ...]:
    return event.time, event.type, str(event.data), str(sorted(event.extensions.items()))
