"""Aggregates that go along with a stretch, against their definition over the whole stretch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ensue
from ensue.engine.core.relating.form import AskedAggregate
from ensue.engine.core.relating.sliding import WantedAggregate, sliding_aggregate
from ensue.events.event import Event
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.scopes import MISSING
from ensue.lang.expressions.values import FaultError

MOMENTS = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
ODD = [
    *(None, True, "x", 1.5, float("inf"), float("nan"), 2**70, [1], datetime(2026, 1, 1)),
    MOMENTS[0].astimezone(timezone(timedelta(hours=1))),
]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.sampled_from([0, 1, -3, 2**62, 2**63 - 1, -(2**63)]),
    "real": st.sampled_from([0.0, -0.0, 0.1, 0.2, -0.3, 1e300, 1.7e308, 5e-324, 1e16]),
    "string": st.sampled_from(["", "a", "b"]),
    "boolean": st.booleans(),
    "timestamp": st.sampled_from(MOMENTS),
}
TAKES = {
    name: sorted(aggregate.takes or VALUES, key=list(VALUES).index)
    for name, aggregate in AGGREGATES.items()
}
ASKED = [(name, kind) for name, kinds in TAKES.items() for kind in kinds]


def told(compute: Any) -> tuple[str, str]:
    try:
        found = compute()
    except FaultError as fault:
        found = fault
    if isinstance(found, FaultError):
        return "fault", found.kind
    return type(found).__name__, repr(found)


@pytest.mark.parametrize(("name", "kind"), ASKED)
@given(data=st.data())
def test_an_aggregate_that_goes_along_is_that_of_the_whole_stretch(
    name: str, kind: str, data: st.DataObject
) -> None:
    values = data.draw(st.lists(VALUES[kind] | st.sampled_from([None, *ODD]), max_size=12))
    found = sliding_aggregate(WantedAggregate(AskedAggregate(name, "f", ("v",), kind), ("v",)))
    start = cut = 0
    for end, value in enumerate(values, 1):
        found.push(Event(f"e{end}", "s", "F", end, {"v": value}, {}))
        for _ in range(data.draw(st.integers(0, min(2, end - start)))):
            found.pop(start - cut)
            start += 1
        if data.draw(st.booleans()):
            found.cut(start - cut)
            cut = start
        stretch = [MISSING if each is None else each for each in values[start:end]]
        try:
            expected = told(lambda: AGGREGATES[name].compute(stretch))  # noqa: B023
        except TypeError:
            # Values that have no order: the definition has no answer, and neither has a stretch.
            with pytest.raises(TypeError):
                found.result()
            continue
        assert told(found.result) == expected
    found.clear()
    assert told(found.result) == told(lambda: AGGREGATES[name].compute([]))


def test_an_extension_of_the_same_name_goes_first() -> None:
    found = sliding_aggregate(
        WantedAggregate(AskedAggregate("SUM", "f", ("v",), "integer"), ("v",))
    )
    found.push(Event("1", "s", "F", 0, {"v": 3}, {}))
    found.push(Event("2", "s", "F", 0, {"v": 4}, {"v": "text"}))
    assert isinstance(found.result(), FaultError)
    found.pop(0)
    found.pop(1)
    found.push(Event("3", "s", "F", 0, {"v": 5}, {}))
    assert found.result() == 5


LIBRARY = """
eventtype A { attribute string k; attribute long v; };
eventtype Out { attribute string k; attribute double v; };
Out correlation R (A a, A f where v > 0) a ; f within 100 s by k
    having sum(f.v) > 40 AND count(f) > 2 keep all
{ case true: push new Out { k = f.k, v = avg(f.v) }; }
"""


def test_a_stretch_begins_behind_what_stands_before_it_and_moves_with_the_window() -> None:
    run = ensue.parse(LIBRARY).start(engine="step")
    made: list[Any] = []
    for second, value in [(0, 50), (10, 20), (20, 20), (30, 10), (100, 5), (101, 7), (125, 7)]:
        made += run.push(Event(f"e{second}", "s", "A", second * 1_000_000, {"k": "x", "v": value}))

    # At 30 behind the one at 0; at 101 behind the one at 10, at 125 behind that at 30.
    assert [(each.extensions["trigger"], each.data["v"]) for each in made] == [
        ("e30", 50 / 3),
        ("e100", 55 / 4),
        ("e101", 42 / 4),
    ]
