"""Schedules from declarations: rates, priorities, mistakes, and the threads that run them."""

from __future__ import annotations

from typing import Any

import pytest

from ensue.channel.scheduling import Schedule
from ensue.channel.scheduling.drawing import gantt
from ensue.channel.scheduling.timeline import played
from ensue.errors import UsageError
from tests.channel.scheduling.dispatching import random_tables

SUPPLIERS: list[dict[str, Any]] = [
    {"name": "fast", "period": "20 ms", "worst": "1 ms", "supplies": ["F"]},
    {"name": "slow", "period": "50 ms", "worst": "2 ms", "supplies": ["S"]},
]


def schedule(*more: dict[str, Any], **settings: Any) -> Schedule:
    return Schedule.of({"schedule": settings, "operation": [*SUPPLIERS, *more]})


def consumer(name: str = "it", **consumes: Any) -> dict[str, Any]:
    return {"name": name, "worst": "3 ms", "consumes": consumes, "supplies": [name.upper()]}


def test_a_consumer_of_all_runs_as_often_as_the_slowest_and_of_any_as_all_together() -> None:
    found = schedule(consumer("both", all=["F", "S"]), consumer("either", any=["F", "S"]))

    assert found["both"].rate == 20
    assert found["either"].rate == 70
    assert found["either"].deadline == 14_285
    assert found.utilisation == pytest.approx(0.05 + 0.04 + 0.06 + 0.21)


def test_the_rate_of_a_type_is_that_of_all_its_suppliers_along_any_number_of_steps() -> None:
    found = schedule(
        {"name": "too", "period": "50 ms", "worst": "1 ms", "supplies": ["S"]},
        consumer("first", any=["S"]),
        consumer("second", all=["FIRST", "F"]),
    )

    assert found["first"].rate == 40
    assert found["second"].rate == 40


def test_the_shorter_period_has_the_higher_priority_and_a_supplier_goes_before_its_consumers() -> (
    None
):
    found = schedule(consumer("late", any=["LATER"]), consumer("later", any=["F"]))

    ranks = {each.name: (each.priority, each.sub_priority) for each in found.operations}
    assert ranks["fast"] > ranks["later"] > ranks["late"] > ranks["slow"]
    assert found["fast"].priority == found["late"].priority


def test_maximum_urgency_puts_critical_operations_first_and_then_those_with_little_laxity() -> None:
    found = schedule(
        {**consumer("alarm", any=["S"]), "critical": True},
        {**consumer("tight", any=["S"]), "deadline": "5 ms"},
        strategy="maximum-urgency",
    )

    by_urgency = sorted(found.operations, key=lambda each: -each.priority)
    assert [each.name for each in by_urgency] == ["alarm", "tight", "fast", "slow"]


def test_fixed_takes_the_priorities_that_are_given() -> None:
    given = [{**each, "priority": number} for number, each in enumerate(SUPPLIERS)]
    found = Schedule.of({"schedule": {"strategy": "fixed"}, "operation": given})

    assert [(each.name, each.priority) for each in found.operations] == [("fast", 0), ("slow", 1)]
    assert found["fast"].response == 3_000
    assert found["slow"].response == 2_999


def test_an_operation_that_misses_its_deadline_is_named_the_most_urgent_first() -> None:
    found = schedule({**consumer("it", any=["F"]), "deadline": "5 ms"})

    assert not found.is_schedulable
    assert found.first_missed == found["it"]
    assert found["it"].response == 5_999


def test_more_work_than_a_thread_can_do_has_no_bound() -> None:
    found = schedule({"name": "greedy", "period": "10 ms", "worst": "11 ms", "supplies": []})

    assert found["greedy"].response is None
    assert found["slow"].response is None
    assert not found.is_schedulable


def test_a_thread_without_time_to_spare_may_still_meet_every_deadline() -> None:
    full = [{"name": f"o{n}", "period": "10 ms", "worst": "5 ms", "supplies": []} for n in range(2)]
    found = Schedule.of({"operation": full})

    assert found.utilisation == 1
    assert [each.response for each in found.operations] == [9_999, 10_000]


@pytest.mark.parametrize("seed", range(200, 240))
def test_several_threads_never_take_longer_than_the_bound_that_proves_them(seed: int) -> None:
    tables = random_tables(seed, with_consumers=True)
    tables["schedule"]["threads"] = 2
    found = Schedule.of(tables)
    if not found.is_schedulable:
        return
    for turn in played(found.jobs, 2, 20_000).turns:
        response = found[turn.name].response
        assert response is not None
        assert turn.end - turn.released <= response


def test_a_bound_for_several_threads_says_that_it_is_one() -> None:
    assert schedule(threads=1).is_exact
    assert not schedule(threads=2).is_exact


def test_a_circle_of_operations_is_refused_with_its_path() -> None:
    with pytest.raises(UsageError, match="`one` supplies `two` supplies `one`"):
        schedule(consumer("one", any=["TWO", "F"]), consumer("two", any=["ONE"]))


def test_a_long_chain_of_operations_has_the_rate_of_its_source() -> None:
    chain = [consumer("c0", any=["F"])]
    chain += [consumer(f"c{n}", any=[f"C{n - 1}"]) for n in range(1, 60)]
    for each in chain:
        each["worst"] = "0.1 ms"

    assert schedule(*reversed(chain))["c59"].rate == 50


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
    tables = {
        "schedule": {"strategy": "rate", "threads": 0},
        "operation": [
            {"name": "a", "period": "never", "supplies": ["X"]},
            {"name": "a", "consumes": {"all": ["Y"]}, "wurst": "1 ms"},
            {"name": "b", "period": "1 s", "consumes": {"any": ["X"]}, "priority": 3},
            {"name": "c", "consumes": ["X"]},
        ],
    }
    with pytest.raises(UsageError) as refused:
        Schedule.of(tables)

    said = str(refused.value)
    for each in (
        "there is no strategy `rate`; choose one of `rate-monotonic`, `maximum-urgency`, `fixed`",
        "`threads` is a number from 1 to 1,024",
        "operation `a`: `period` is a duration longer than nothing",
        "two operations are called `a`",
        "operation 2: there is no key `wurst`",
        "operation `a`: no operation supplies `Y`",
        "operation `b`: the rate of a consumer follows from what it consumes",
        "operation `c`: `consumes` says whether one of each type is needed or any of them",
    ):
        assert each in said, each


def test_execution_times_that_nobody_knows_are_asked_for() -> None:
    tables = {"operation": [{"name": "a", "period": "1 s"}, {"name": "b", "period": "1 s"}]}

    with pytest.raises(UsageError, match="execution time is known of `a`, `b`"):
        Schedule.of(tables)
    assert Schedule.of(tables, {"a": 1_000, "b": 2_000})["b"].worst == 2_000


def test_a_chart_shows_every_turn_and_frames_those_that_are_late() -> None:
    found = schedule({**consumer("it", any=["F"]), "deadline": "3 ms"})
    drawn = gantt(found)

    assert drawn.count("<rect") == 1 + len(found.timeline.turns)
    assert drawn.count("too late") == sum(each.is_late for each in found.timeline.turns) > 0
    assert "one hyperperiod, 100 ms" in drawn
