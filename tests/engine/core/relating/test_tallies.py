"""Aggregates that hold no events, against their definition over all events of a stretch."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ensue
from ensue.engine.core.relating.form import AskedAggregate
from ensue.engine.core.relating.tallies import SavedSum, SavedTallies, SumTally, tally
from ensue.events.event import Event
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.scopes import MISSING

from .test_sliding import ASKED, ODD, VALUES, told

RUNNING = [(name, kind) for name, kind in ASKED if AGGREGATES[name].running]


def linked(number: int, value: Any) -> tuple[int, Event]:
    return number, Event(f"e{number}", "s", "F", number, {"v": value}, {})


def definition(name: str, values: list[Any]) -> tuple[str, str]:
    try:
        return told(lambda: AGGREGATES[name].compute(values))
    except TypeError:
        return "no order", ""


def found_by(aggregate: Any) -> tuple[str, str]:
    try:
        return told(aggregate.result)
    except TypeError:
        return "no order", ""


@pytest.mark.parametrize(("name", "kind"), RUNNING)
@given(data=st.data())
def test_a_tally_is_the_aggregate_of_all_values_so_far(
    name: str, kind: str, data: st.DataObject
) -> None:
    values = data.draw(st.lists(VALUES[kind] | st.sampled_from([None, *ODD]), max_size=12))
    found = tally(AskedAggregate(name, "f", ("v",), kind), ("v",))
    for end, value in enumerate(values, 1):
        found.push(linked(end, value))
        stretch = [MISSING if each is None else each for each in values[:end]]

        assert found_by(found) == definition(name, stretch)
    found.clear()
    assert told(found.result) == told(lambda: AGGREGATES[name].compute([]))


@pytest.mark.parametrize(("name", "kind"), [each for each in RUNNING if each[0] != "COUNT"])
@given(data=st.data())
def test_a_tally_follows_from_what_it_holds_and_saves(
    name: str, kind: str, data: st.DataObject
) -> None:
    """Also where some other events are read again with those that it holds."""
    values = data.draw(st.lists(VALUES[kind] | st.sampled_from([None, *ODD]), max_size=12))
    also = data.draw(st.sets(st.integers(1, 12)))
    first = tally(AskedAggregate(name, "f", ("v",), kind), ("v",))
    for end, value in enumerate(values, 1):
        first.push(linked(end, value))

    again = tally(AskedAggregate(name, "f", ("v",), kind), ("v",))
    for number in sorted({each for each, _ in first.held()} | also):
        if number <= len(values):
            again.push(linked(number, values[number - 1]))
    if isinstance(again, SumTally):
        saved = first.saved()
        assert saved is not None
        assert saved.is_possible
        again.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(saved), type=SavedSum))

    assert found_by(again) == found_by(first)


SUM = SavedSum(3, b"\1")


@pytest.mark.parametrize(
    ("counts", "sums"),
    [
        ({"a": -1}, {1: SUM}),
        ({"a": 2**62}, {1: SUM}),
        ({"b": 3}, {1: SUM}),
        ({"a": 3}, {}),
        ({"a": 3}, {2: SUM}),
        ({"a": 3}, {1: SavedSum(-1, b"\1")}),
        ({"a": 3}, {1: SavedSum(3, b"\1" * 40)}),
        ({"a": 3}, {1: SavedSum(3, b"", b"\1" * 400, -1074)}),
        ({"a": 3}, {1: SavedSum(3, b"", b"\1", -2000)}),
        ({"a": 3}, {1: SavedSum(3, b"", b"\1", 2000)}),
        ({"a": 3}, {1: SavedSum(3, b"", fault="x")}),
    ],
)
def test_tallies_that_no_run_has_do_not_fit(
    counts: dict[str, int], sums: dict[int, SavedSum]
) -> None:
    assert SavedTallies({"a": 3}, {1: SUM}).fit(["a"], [1])
    assert not SavedTallies(counts, sums).fit(["a"], [1])


TYPES = """
eventtype A { attribute string k; attribute long v; attribute double d; };
eventtype B : A {};
eventtype Out { attribute long long n, m; attribute double d, e; };
"""
RULES = [
    "a by k keep all having count(a) > 2",
    "a ; b by k having count(a) > 2 AND sum(a.v) > 5",
    "a ; b ; a by k keep all bind latest having sum(a.d) > 0.3",
    "a + b by k keep last bind first having max(a.v) - min(b.v) > 2",
    "a ; a ; b ; a by k unless b having first(a.v) < last(b.v)",
    "a{12,} by k keep all having sum(a.v) > 3",
    "a ; a ; a ; a by k keep last bind first having count(a) > 4",
]
VALUED = [0.1, 0.2, 1e10, -0.3, 1e-20, 1e300, 0.0, -0.0, None]


def library(rules: list[str] = RULES) -> ensue.Library:
    values = "n = count(a), m = sum(a.v), e = max(a.d)"
    texts = [
        f"Out correlation R{number} (A a, B b) {rule} {{ case true: push new Out {{ {values} "
        f"{', d = sum(b.d)' if 'b' in rule.split(' by ')[0] else ''} }}; }}"
        for number, rule in enumerate(rules)
    ]
    return ensue.parse("\n".join([TYPES, *texts]))


def drawn(count: int, seed: int, keys: str = "xyz", first: int = 0) -> list[Event]:
    draw = Random(seed)
    return [
        Event(
            f"e{number}",
            "s",
            draw.choice("AAB"),
            number * 1000,
            {
                "k": draw.choice(keys),
                "v": draw.choice([None, *range(-5, 10)]),
                "d": draw.choice(VALUED),
            },
        )
        for number in range(first, first + count)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_rules_without_a_window_put_out_by_the_definitions_while_they_move(seed: int) -> None:
    given, draw = drawn(100, seed), Random(seed)
    runs = {name: library().start(name) for name in ("reference", "step", "batch")}
    moving, engine = library().start("step"), "step"
    for each in given:
        expected = runs["reference"].push(each)

        assert runs["step"].push(each) == expected
        assert runs["batch"].push(each) == expected
        if draw.random() < 0.2:
            engine = "batch" if engine == "step" else "step"
            moving = library().resume(moving.snapshot(), engine=engine)
        assert moving.push(each) == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("everything_small")
def test_sums_become_wider_and_are_cleared_up_in_batches(seed: int) -> None:
    given = drawn(300, seed)
    batch, judge = library().start("batch"), library().start("reference")
    for start in range(0, 300, 30):
        piece = given[start : start + 30]

        assert batch.push_all(piece) == judge.push_all(piece)


@pytest.mark.parametrize("engine", ["step", "batch"])
@pytest.mark.parametrize("rule", RULES)
def test_a_key_holds_no_more_events_however_many_have_come(rule: str, engine: str) -> None:
    """Nothing is as large as these thresholds ask for, so that nothing is ever forgotten."""
    said = rule.replace("unless b", "").replace("> 0.3", "> 1e301")
    for threshold in ("> 2", "> 3", "> 4", "> 5", "< last(b.v)"):
        said = said.replace(threshold, "> 1000000000")
    run = library([said]).start(engine)
    sizes = []
    for round_ in range(4):
        run.push_all(drawn(1_000, round_, "xy", 1_000 * round_))
        sizes.append(len(run.snapshot()))

    assert sizes[-1] < 12_000
    assert sizes[-1] < sizes[0] + 200
