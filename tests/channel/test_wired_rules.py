"""Rules that read each other by name, behind a channel and on Spark's plan."""

from __future__ import annotations

import pytest

import ensue
from ensue.channel.delivery.correlation import CorrelationStep
from ensue.channel.lookup.interests import interests
from ensue.channel.lookup.wants import EventWant, correlated
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.spark.plan import plan_of

LIBRARY = ensue.parse(
    """
    eventtype A {}
    eventtype Mid {}
    eventtype Out {}
    internal Mid correlation First (A a from "gps", "ins") a { case true: push new Mid {}; }
    Mid correlation Second (Mid m from First, outside) m { case true: push m; }
    Out correlation Third (Mid m from Second) m{2} { case true: push new Out {}; }
    Out correlation Other (A a) a { case true: push new Out {}; }
    """
)


def outputs(name: str | None, events: list[Event]) -> list[str]:
    step = CorrelationStep(correlated(LIBRARY, name), None)
    return [each.extensions["correlation"] for event in events for each in step.read(event)]


def stream() -> list[Event]:
    kinds = [("A", "gps"), ("Mid", "x"), ("A", "y"), ("A", "ins")]
    return [Event.of(t, time=n, id=str(n), source=s) for n, (t, s) in enumerate(kinds)]


def test_a_named_rule_runs_with_those_that_it_reads_and_puts_out_alone() -> None:
    assert outputs("Third", stream()) == ["Third"]
    assert outputs("Second", stream()) == ["Second", "Second", "Second"]


def test_without_a_name_what_is_internal_stays_inside() -> None:
    assert outputs(None, stream()) == [
        *("Other", "Second"),
        *("Second", "Third"),
        "Other",
        *("Other", "Second"),
    ]


def test_a_channel_delivers_what_the_rules_read_from_outside() -> None:
    assert set(interests(correlated(LIBRARY, "Third"))) == {
        EventWant("A", "gps"),
        EventWant("A", "ins"),
        EventWant("Mid"),
    }


def test_an_internal_rule_has_no_consumers() -> None:
    with pytest.raises(UsageError, match="`First` is internal"):
        correlated(LIBRARY, "First")
    with pytest.raises(UsageError, match="`First` is internal"):
        plan_of(LIBRARY.checked, ["First"])


def test_on_spark_the_rules_before_a_selected_one_run_too() -> None:
    plan = plan_of(LIBRARY.checked, ["Third"])

    assert plan.selected == ("Third",)
    assert {rule.name for rule in plan.rules} == {"First", "Second", "Third"}
    assert plan_of(LIBRARY.checked).selected == ("Second", "Third", "Other")
