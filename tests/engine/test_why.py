"""Why an output came, and how near a rule came to one that did not."""

from __future__ import annotations

import pytest

import ensue
from ensue.engine.explaining import WhyNot, WhyOutput
from ensue.engine.run import Run
from ensue.errors import UsageError
from ensue.events.event import Event

from .rules import LIBRARY, SECOND, event, login

WINDOW = LIBRARY.replace("by user", "within 10 s by user")
ECL = (
    LIBRARY.split("Alarm correlation")[0]
    + """
Alarm ecl Silent (Login bad where ok = false, Reset r) by user
    { repeat { notify { sequential { bad, do { timeout(5 s) } unless { r } } } } }
"""
)


def broken_into(run: Run) -> list[Event]:
    """Two logins that fail and one that does not: what comes of the last."""
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 2, "eve", False))
    return run.push(login("e3", 3, "eve", True))


def test_an_output_is_told_by_its_events_its_label_and_their_times() -> None:
    run = ensue.parse(LIBRARY).start(explain=True)
    made = broken_into(run)
    why = run.why(made[0])

    assert isinstance(why, WhyOutput)
    assert why.labels == ("l1",)
    assert [(each.part, each.reading.event_id, each.time) for each in why.causes] == [
        ("`bad`", "e2", 2 * SECOND),
        ("`good`", "e3", 3 * SECOND),
    ]
    assert str(why).splitlines() == [
        "`Alarm` from `Break` for key `eve`: completed by `e3` at 1970-01-01T00:00:03Z, label `l1`",
        "  because of `bad` by `e2`, at 1970-01-01T00:00:02Z",
        "  because of `good` by `e3`, at 1970-01-01T00:00:03Z",
    ]


def test_an_output_of_ecl_has_causes_here_since_its_expression_was_started() -> None:
    """The second round is told by its own events, and the clock is a cause too."""
    run = ensue.parse(ECL).start(explain=True)
    run.push(login("e1", 1, "eve", False))
    (first,) = run.advance(6 * SECOND)
    run.push(login("e2", 7, "eve", False))
    (second,) = run.advance(20 * SECOND)
    why = run.why(second)

    assert first.extensions["causes"] == ""
    assert isinstance(why, WhyOutput)
    assert [str(each) for each in why.causes] == [
        "`bad` by `e2`, at 1970-01-01T00:00:07Z",
        "the clock, at 1970-01-01T00:00:12Z",
    ]


def test_a_rule_that_did_not_fire_says_what_is_complete_and_what_it_waits_for() -> None:
    run = ensue.parse(LIBRARY).start(explain=True)
    run.push(login("e1", 1, "eve", False))
    why = run.why("Break", key="eve")

    assert str(why).splitlines() == [
        "`Break` for key `eve`: waits for (`bad`, then `good` or `r`)"
        " (`bad` is `Login bad where ok = FALSE`)",
        "  complete is `bad` by `e1`, at 1970-01-01T00:00:01Z",
    ]


def test_without_a_key_the_one_that_came_nearest_is_told() -> None:
    run = ensue.parse(LIBRARY).start(explain=True)
    for number, user in enumerate(["bob", "eve", "eve", "kim"]):
        run.push(login(f"e{number}", number, user, False))
    why = run.why("Break")

    assert isinstance(why, WhyNot)
    assert (why.key, len(why.done)) == ("eve", 2)


def test_within_a_window_the_last_moment_for_the_rest_is_told() -> None:
    run = ensue.parse(WINDOW).start(explain=True)
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 4, "eve", False))
    why = run.why("Break", key="eve")

    assert isinstance(why, WhyNot)
    assert why.before == 11 * SECOND
    assert "no later than 1970-01-01T00:00:11Z" in str(why)


def test_what_has_left_the_window_says_when_the_rest_had_to_come() -> None:
    run = ensue.parse(WINDOW).start(explain=True)
    run.push(login("e1", 1, "eve", False))
    run.push(event("Reset", "other", 30, user="bob"))
    why = run.why("Break", key="eve")

    assert isinstance(why, WhyNot)
    assert why.done == ()
    assert [each.reading.event_id for each in why.left] == ["e1"]
    assert "the rest had to come no later than 1970-01-01T00:00:11Z" in str(why)


def test_ecl_says_what_it_waits_for_with_the_time_of_its_timeout() -> None:
    run = ensue.parse(ECL).start(explain=True)
    run.push(login("e1", 1, "eve", False))
    why = run.why("Silent", key="eve")

    assert str(why).splitlines() == [
        "`Silent` for key `eve`: waits for"
        " the clock to reach 1970-01-01T00:00:06Z, unless `r` comes first",
        "  complete is `bad` by `e1`, at 1970-01-01T00:00:01Z",
    ]


def test_a_key_that_never_came_says_so() -> None:
    run = ensue.parse(LIBRARY).start(explain=True)

    assert str(run.why("Break", key="eve")).endswith("no event that it reads has come")


def test_a_run_that_keeps_no_reasons_says_how_to_have_them() -> None:
    with pytest.raises(UsageError, match="explain=True"):
        ensue.parse(LIBRARY).start().why("Break")


def test_an_unknown_rule_and_a_foreign_event_are_refused() -> None:
    run = ensue.parse(LIBRARY).start(explain=True)
    with pytest.raises(UsageError, match="did you mean `Break`"):
        run.why("Brake")
    with pytest.raises(UsageError, match="no output of this run"):
        run.why(login("e1", 1, "eve", False))


def test_a_run_that_explains_is_resumed_with_its_reasons() -> None:
    library = ensue.parse(LIBRARY)
    run = library.start(explain=True)
    made = broken_into(run)

    assert library.resume(run.snapshot()).why(made[0]) == run.why(made[0])
