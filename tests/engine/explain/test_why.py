"""Why an output came, and how near a rule came to one that did not."""

from __future__ import annotations

from typing import Any

import pytest

import ensue
from ensue.engine.explain.explainer import WhyNot, WhyOutput
from ensue.engine.run import Run
from ensue.errors import UsageError
from ensue.events.event import Event
from tests.engine.rules import LIBRARY, SECOND, event, login

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
        ("`bad`", "e1", 1 * SECOND),
        ("`bad`", "e2", 2 * SECOND),
        ("`good`", "e3", 3 * SECOND),
    ]
    assert str(why).splitlines() == [
        "`Alarm` from `Break` for key `eve`: completed by `e3` at 1970-01-01T00:00:03Z, label `l1`",
        "  because `bad` was matched by event `e1`, at 1970-01-01T00:00:01Z",
        "  because `bad` was matched by event `e2`, at 1970-01-01T00:00:02Z",
        "  because `good` was matched by event `e3`, at 1970-01-01T00:00:03Z",
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
        "`bad` was matched by event `e2`, at 1970-01-01T00:00:07Z",
        "the clock reached 1970-01-01T00:00:12Z",
    ]


def test_a_rule_that_did_not_fire_says_what_is_complete_and_what_it_waits_for() -> None:
    run = ensue.parse(LIBRARY).start(explain=True)
    run.push(login("e1", 1, "eve", False))
    why = run.why("Break", key="eve")

    assert str(why).splitlines() == [
        "`Break` for key `eve`: waits for ((`bad`, then `good`) or `r`)"
        " (`bad` is `Login bad where ok = FALSE`)",
        "  `bad` was matched by event `e1`, at 1970-01-01T00:00:01Z",
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
        "  `bad` was matched by event `e1`, at 1970-01-01T00:00:01Z",
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


RULE = """
eventtype E { attribute string user; };
eventtype Login : E { attribute boolean ok; }; eventtype Reset : E {};
eventtype Alarm {};
"""


def explained(rule: str) -> Run:
    """A run of one rule `R` over logins `a` and `b` (who failed and who did not) and resets `r`."""
    ports = "(Login a where ok = false, Login b where ok = true, Reset r)"
    kind = "ecl" if rule.startswith("{") else "correlation"
    return ensue.parse(f"{RULE} Alarm {kind} R {ports} {rule}").start(explain=True)


ALWAYS = "{ case true: push new Alarm {}; }"


def test_every_round_of_a_repetition_is_a_cause() -> None:
    run = explained(f"a{{3}} {ALWAYS}")
    made = [m for n in range(3) for m in run.push(login(f"e{n}", n, "eve", False))]

    assert [each.reading.event_id for each in run.why(made[0]).causes] == ["e0", "e1", "e2"]


def test_of_very_many_causes_the_first_and_the_last_are_said() -> None:
    run = explained(f"a{{100}} {ALWAYS}")
    made = [m for n in range(100) for m in run.push(login(f"e{n}", n, "eve", False))]
    lines = str(run.why(made[0])).splitlines()

    assert len(lines) == 12
    assert lines[6] == "  ... 90 more ..."
    assert "`e99`" in lines[-1]


def test_the_events_that_could_have_been_left_out_are_no_causes() -> None:
    run = explained(f"a ; b {ALWAYS}")
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 2, "eve", False))
    (made,) = run.push(login("e3", 3, "eve", True))

    assert [each.reading.event_id for each in run.why(made).causes] == ["e2", "e3"]


def test_with_bind_first_the_first_events_are_the_causes() -> None:
    run = explained(f"a ; b bind first {ALWAYS}")
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 2, "eve", False))
    (made,) = run.push(login("e3", 3, "eve", True))

    assert [each.reading.event_id for each in run.why(made).causes] == ["e1", "e3"]


def test_what_is_bound_in_an_alternative_that_is_not_complete_is_told_apart() -> None:
    run = explained(f"a ; b | r {ALWAYS}")
    run.push(login("e1", 1, "eve", False))
    (made,) = run.push(event("Reset", "e2", 2, user="eve"))
    why = run.why(made)

    assert [each.reading.event_id for each in why.causes] == ["e2"]
    assert [each.reading.event_id for each in why.bound] == ["e1"]
    assert "  and `a` was matched by event `e1`" in str(why)


def test_what_is_still_in_the_window_is_not_told_as_outside_of_it() -> None:
    run = explained(f"a + b + r within 10 s {ALWAYS}")
    run.push(login("e1", 1, "eve", False))
    run.push(login("e2", 4, "eve", False))
    run.push(login("e3", 13, "eve", True))
    run.push(event("Other", "e4", 15))
    why = run.why("R")

    assert isinstance(why, WhyNot)
    assert [each.reading.event_id for each in why.done] == ["e3"]
    assert [each.reading.event_id for each in why.left] == ["e2"]
    assert why.left_before == 14 * SECOND


def test_a_port_that_is_complete_in_two_places_is_told_once() -> None:
    run = explained("l1:(a + b) | l2:(a + r) { case l1 | l2: push new Alarm {}; }")
    run.push(login("e1", 1, "eve", False))
    why = run.why("R")

    assert isinstance(why, WhyNot)
    assert len(why.done) == 1


def test_labels_that_are_aborted_are_named() -> None:
    run = explained("l1:a || l2:b { case l2: abort(l1); case l1: push new Alarm {}; }")
    run.push(login("e1", 1, "eve", True))

    assert "  label `l1` is aborted" in str(run.why("R"))


def test_ecl_that_has_not_come_to_its_push_yet_is_not_called_finished() -> None:
    run = explained("{ sequential { a, b, notify { r } } }")
    run.push(login("e1", 1, "eve", False))

    assert "waits for `b`, then `notify { r }`" in str(run.why("R"))


def test_a_key_of_a_rule_without_keys_is_refused() -> None:
    run = explained(f"a ; b {ALWAYS}")

    with pytest.raises(UsageError, match="`R` has no `by`, and the key `eve` was asked for"):
        run.why("R", key="eve")


@pytest.mark.parametrize("asked", [5, None, ["R"]])
def test_what_is_neither_an_output_nor_a_name_is_told_what_is_allowed(asked: Any) -> None:
    with pytest.raises(UsageError, match=r"of the name of a correlation; there is `R`"):
        explained(f"a ; b {ALWAYS}").why(asked)


def test_a_run_that_explains_is_resumed_with_its_reasons() -> None:
    library = ensue.parse(LIBRARY)
    run = library.start(explain=True)
    made = broken_into(run)

    assert library.resume(run.snapshot()).why(made[0]) == run.why(made[0])
