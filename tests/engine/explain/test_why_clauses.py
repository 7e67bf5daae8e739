"""What `having`, `unless`, `timeout` and `keep` have done is told in words."""

from __future__ import annotations

import ensue
from ensue.engine.explain.explainer import WhyNot, WhyOutput
from ensue.engine.run import Run
from ensue.events.event import Event

TYPES = """
eventtype A { attribute double v; attribute string ip; }
eventtype B : A {}
eventtype C {}
eventtype Out {}
"""


def started(head: str, ports: str = "A a, B b, C c") -> Run:
    text = f"{TYPES}Out correlation R ({ports}) {head} {{ case true: push new Out {{}}; }}"
    return ensue.parse(text).start(explain=True)


def push(run: Run, name: str, second: int, kind: str, **data: object) -> list[Event]:
    values = {} if kind == "C" else {"v": 0.0, "ip": "x", **data}
    return run.push(Event.of(kind, id=name, time=second * 1_000_000, data=values))


def lines(run: Run) -> list[str]:
    return str(run.why("R")).splitlines()


def test_having_that_was_false_is_told_by_what_it_found_and_what_was_asked() -> None:
    run = started("a within 10 min having count(a) > 5", "A a")
    for second in range(4):
        push(run, f"e{second}", second, "A")

    assert lines(run)[-1] == "  `having` was false: `count(a)` is 4, asked is more than 5"


def test_only_the_parts_that_made_it_false_are_told() -> None:
    run = started("a within 10 min having count(a) >= 1 AND distinct(a.ip) > 2", "A a")
    push(run, "e1", 1, "A")

    assert lines(run)[-1] == "  `having` was false: `distinct(a.ip)` is 1, asked is more than 2"


def test_a_comparison_of_two_events_tells_both_values() -> None:
    run = started("a ; b bind latest having b.v < 0.95 * a.v")
    push(run, "e1", 1, "A", v=100.0)
    push(run, "e2", 2, "B", v=99.0)

    assert lines(run)[-1] == (
        "  `having` was false: `b.v` is 99.0, asked is less than 95.0, which is `0.95 * a.v`"
    )


def test_not_and_null_are_told_too() -> None:
    run = started("a having NOT (a.v > 1) AND a.ip = 'y'", "A a")
    push(run, "e1", 1, "A", v=2.0, ip=None)

    assert lines(run)[-1] == (
        "  `having` was false: `a.v` is 2.0, asked is at most 1; `a.ip` is null, asked is just 'y'"
    )


def test_other_conditions_are_told_with_their_values() -> None:
    run = started("a having a.ip LIKE 'y%'", "A a")
    push(run, "e1", 1, "A")

    assert lines(run)[-1] == "  `having` was false: `a.ip LIKE 'y%'` is false (`a.ip` is 'x')"


def test_the_event_that_made_a_rule_forget_is_named() -> None:
    run = started("a ; b unless c")
    push(run, "e1", 1, "A")
    push(run, "e2", 2, "C")
    why = run.why("R")

    assert isinstance(why, WhyNot)
    assert why.forgotten is not None
    assert why.forgotten.reading.event_id == "e2"
    assert lines(run) == [
        "`R`: waits for `a`, then `b`",
        "  `c` was matched by event `e2`, at 1970-01-01T00:00:02Z: "
        "`unless` made it forget all that came before",
    ]


def test_nothing_was_forgotten_where_nothing_was_remembered() -> None:
    run = started("a ; b unless c")
    push(run, "e1", 1, "C")

    assert lines(run) == ["`R`: waits for `a`, then `b`"]


def test_a_timeout_says_when_it_is_due_and_what_would_stop_it() -> None:
    run = started("a ; timeout(30 min) unless c")
    push(run, "e1", 1, "A")

    assert lines(run) == [
        "`R`: waits for the clock to reach 1970-01-01T00:30:01Z, unless `c` comes first",
        "  `a` was matched by event `e1`, at 1970-01-01T00:00:01Z",
    ]


def test_an_output_tells_the_condition_that_held_and_what_is_kept() -> None:
    run = started("a ; b keep last bind latest having b.v < a.v")
    push(run, "e1", 1, "A", v=2.0)
    (made,) = push(run, "e2", 2, "B", v=1.0)
    why = run.why(made)

    assert isinstance(why, WhyOutput)
    assert str(why).splitlines()[1:] == [
        "  because `a` was matched by event `e1`, at 1970-01-01T00:00:01Z",
        "  because `b` was matched by event `e2`, at 1970-01-01T00:00:02Z",
        "  `having` was true: `b.v` is 1.0, asked is less than 2.0, which is `a.v`",
        "  `keep last`: of all that it has read it remembers only event `e2`",
    ]


def test_an_output_of_the_clock_tells_its_timeout() -> None:
    run = started("a ; timeout(30 min) unless c keep all")
    push(run, "e1", 1, "A")
    (made,) = run.advance(3_600 * 1_000_000)

    assert str(run.why(made)).splitlines()[1:] == [
        "  because `a` was matched by event `e1`, at 1970-01-01T00:00:01Z",
        "  because `timeout(30 min)` was due at 1970-01-01T00:30:01Z",
        "  `keep all`: it still remembers all that it has read",
    ]
