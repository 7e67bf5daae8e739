"""A clock that jumps: what is refused, what it may cost, and that every engine says the same."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from itertools import islice

import pytest

import ensue
from ensue.engine.run import Run
from ensue.engine.timing.jumps import FIRINGS_IN_A_JUMP, LONGEST_JUMP, TimeRuns, shortest_period
from ensue.errors import EventError, UsageError
from ensue.events.times import parse_time
from tests.engine.rules import SECOND, event

DAY = 86_400 * SECOND
WRONG = parse_time("9999-12-31T23:59:59Z") // SECOND
ENGINES = ("reference", "step", "batch")

TYPES = (
    "eventtype A { attribute string k; }; eventtype B { attribute string k; }; eventtype Out {};"
)
RECURRING = {
    "every": "Out correlation R (A a, every 1 s t) t by k { case true: push new Out {}; }",
    "deadline": "Out correlation R (A a, deadline 1 s t) t by k { case true: push new Out {}; }",
    "ecl": "Out ecl R (A a) by k { repeat { notify { timeout(1 s) } } }",
    "modes": "Out ecl R (A a) { modes { in (timeout(1 s)) do { a } in (timeout(2 s)) do { a } } }",
    "idle": "Out correlation R (A a, B b, every 1 s t) b ; t by k { case true: push new Out {}; }",
}
ONCE = {
    "filter": "Out correlation R (A a) a ; timeout(1 s) by k { case true: push new Out {}; }",
    "ecl": "Out ecl R (A a, B b) by k"
    " { repeat { notify { sequential { a, do { timeout(1 s) } unless { b } } } } }",
}


def started(rule: str, engine: str, max_jump: str = "auto") -> Run:
    return ensue.parse(f"{TYPES} {rule}").start(engine, max_jump=max_jump)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", [*RECURRING.values(), *ONCE.values()])
def test_an_event_of_the_far_future_is_refused_and_the_run_goes_on(rule: str, engine: str) -> None:
    run, plain = started(rule, engine), started(rule, engine)
    for each in (run, plain):
        each.push(event("A", "a1", 0, k="x"))
    with pytest.raises(EventError, match="too far ahead"):
        run.push(event("A", "a2", WRONG, k="x"))
    with pytest.raises(EventError, match="too far ahead"):
        run.push_all([event("A", "a3", 1, k="x"), event("A", "a2", WRONG, k="x")])
    if engine != "batch":
        plain.push(event("A", "a3", 1, k="x"))

    later = event("A", "a4", 3, k="x")
    assert run.push(later) == plain.push(later)
    assert run.counts == plain.counts


@pytest.mark.parametrize("rule", RECURRING.values())
def test_the_bound_follows_from_the_shortest_timer_that_fires_again(rule: str) -> None:
    run = started(rule, "step")

    assert run.max_jump == FIRINGS_IN_A_JUMP * SECOND


@pytest.mark.parametrize("rule", ONCE.values())
def test_timers_that_wait_for_an_event_bound_nothing(rule: str) -> None:
    library = ensue.parse(f"{TYPES} {rule}")
    days = [event("A", "a1", 0, k="x"), event("A", "a2", WRONG, k="x")]

    assert shortest_period(library.checked) is None
    assert library.start().max_jump == LONGEST_JUMP
    # What is read whole and in order suffers no harm by a wrong date.
    assert all(len(list(library.run(days, engine=each))) == 1 for each in ENGINES)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_bound_can_be_set_and_lifted(engine: str) -> None:
    rule = ONCE["filter"]
    narrow = started(rule, engine, max_jump="10 s")
    narrow.push(event("A", "a1", 0, k="x"))
    assert len(narrow.push(event("A", "a2", 10, k="x"))) == 1
    with pytest.raises(EventError, match="10 s at most"):
        narrow.push(event("A", "a3", 21, k="x"))
    lifted = started(rule, engine, max_jump="none")
    lifted.push(event("A", "a1", 0, k="x"))
    assert len(lifted.push(event("A", "a2", WRONG, k="x"))) == 1
    library = ensue.parse(f"{TYPES} {rule}")
    assert library.start(max_jump=timedelta(seconds=3)).max_jump == 3 * SECOND


@pytest.mark.parametrize("given", ["soon", "0 s", "-1 s", timedelta(0), 5])
def test_what_is_no_bound_is_refused(given: object) -> None:
    with pytest.raises(UsageError):
        ensue.parse(TYPES).start(max_jump=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_clock_that_is_told_a_time_too_far_ahead_says_so(engine: str) -> None:
    run = started(RECURRING["every"], engine)
    run.push(event("A", "a1", 0, k="x"))

    for call in (run.advance, run.finish):
        with pytest.raises(UsageError, match="max_jump"):
            call("9999-01-01T00:00:00Z")
    assert len(run.advance(5 * SECOND)) == 5


@pytest.mark.parametrize("engine", ENGINES)
def test_a_snapshot_keeps_the_bound(engine: str) -> None:
    library = ensue.parse(f"{TYPES} {ONCE['filter']}")
    for given in ("10 s", "none", "auto"):
        run = library.start(engine, max_jump=given)
        run.push(event("A", "a1", 0, k="x"))

        assert library.resume(run.snapshot()).max_jump == run.max_jump
        assert library.resume(run.snapshot(), max_jump="3 s").max_jump == 3 * SECOND


@pytest.mark.parametrize("engine", ENGINES)
def test_outputs_that_are_not_taken_come_with_the_next_call(engine: str) -> None:
    rule = RECURRING["every"]
    plain, run = started(rule, engine), started(rule, engine)
    given = [event("A", "a1", 0, k="x"), event("A", "a2", 100, k="y"), event("A", "a3", 200, k="x")]
    expected = [output for each in given for output in plain.push(each)]
    run.push(given[0])
    found = list(islice(run.push_iter(given[1]), 10))
    with pytest.raises(UsageError, match="still to be taken"):
        run.snapshot()
    with pytest.raises(UsageError, match="still to be taken"):
        run.remove("R")
    found += islice(run.push_iter(given[2]), 20)

    assert found + run.advance(200 * SECOND) == expected
    assert run.counts == plain.counts
    assert run.snapshot()


COSTLY = """
import resource, sys, time
import ensue
from ensue.events.event import Event
engine, rule, keys, gap = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
run = ensue.parse(rule).start(engine, max_jump="none")
def event(key, second):
    return Event(f"{key}-{second}", "test", "A", second * 1_000_000, {"k": str(key)})
for second in (0, 60):
    for key in range(keys):
        run.push(event(key, second))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = sum(1 for _ in run.push_iter(event(0, 60 + gap)))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(count, (after - before) // 1024)
"""


def cost(engine: str, rule: str, keys: int, gap: int) -> tuple[int, int]:
    """How many outputs a gap of seconds brings about, and how many megabytes it takes."""
    done = subprocess.run(
        [sys.executable, "-c", COSTLY, engine, f"{TYPES} {rule}", str(keys), str(gap)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    count, grown = done.stdout.split()
    return int(count), int(grown)


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_a_gap_over_many_keys_takes_no_memory(engine: str) -> None:
    """12 h, deadline 10 s and 50 keys: 216,000 outputs, more than 150 MB if all are held."""
    rule = RECURRING["deadline"].replace("1 s", "10 s")
    count, grown = cost(engine, rule, 50, 12 * 3600)

    assert count == 50 * 12 * 360
    assert grown < 80


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_firings_that_change_nothing_are_passed_over(engine: str) -> None:
    """A thousand years of a timer that nothing waits for, for a hundred keys."""
    count, _ = cost(engine, RECURRING["idle"], 100, 1000 * 366 * 86_400)

    assert count == 0


def test_runs_of_times_are_found_in_any_order() -> None:
    runs = TimeRuns(10)
    for time in (50, 0, 8, 100, 16, 45, 95, 24, 33):
        runs.add(time, time)

    assert runs.reach(None) == 33
    assert runs.reach(40) == 50
    assert runs.reach(90) == 100
    assert TimeRuns(10).reach(7) == 7
