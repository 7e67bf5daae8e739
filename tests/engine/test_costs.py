"""What `check` says that a key costs is what the engines keep at most."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence

import pytest

import ensue
from ensue.engine.costs import Cost, cost_of

TYPES = """
eventtype A { attribute string k; attribute string u; attribute double v; }
eventtype B : A {}
eventtype Wide : A { attribute string s1, s2, s3, s4, s5, s6; }
eventtype Out {}
"""
KEYS = 60


def library(head: str, ports: str) -> ensue.Library:
    return ensue.parse(
        f"{TYPES}Out correlation R ({ports}) {head} {{ case true: push new Out {{}}; }}"
    )


def cost(head: str, ports: str = "A a, B b") -> Cost:
    loaded = library(head, ports)
    return cost_of(loaded.checked, loaded.correlations[0])


def event(second: int, key: int, kind: str = "A") -> dict[str, object]:
    data = {"k": f"key-{key}", "u": f"user-{second}-{key}", "v": float(second)}
    if kind == "Wide":
        data |= {f"s{n}": f"text-{n}-{second}-{key}" for n in range(1, 7)}
    time = f"2024-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    return {"id": f"{second}-{key}", "source": "s", "type": kind, "time": time, "data": data}


def measured(loaded: ensue.Library, kinds: Sequence[str], engine: str = "step") -> float:
    """The bytes of a key after one event of it in each second."""
    run = loaded.start(engine=engine)
    run.push(event(0, -1, kinds[0]))
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for second, kind in enumerate(kinds):
        for key in range(KEYS):
            run.push(event(second, key, kind))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / KEYS


FIXED = [
    ("a ; b by k", ["A"] * 30),
    ("a ; b within 1 min by k", ["A"] * 30),
    ("a{50} by k", ["A"] * 40),
    ("a{50} within 1 min by k", ["A"] * 40),
    ("a ; timeout(1 h) unless a by k", ["A"] * 30),
    ("a ; b within 1 h by k keep all bind latest having b.v < a.v", ["A"] * 30),
    ("a ; b by k keep last bind latest having b.v < a.v", ["A", "B"] * 20),
    ("a ; b by k unless b", ["A"] * 30),
    ("a by k having count(a) > 1000", ["A"] * 60),
    ("a ; b by k keep all bind latest having sum(a.v) > 1000000", ["A", "B"] * 30),
    ("a ; b by k bind first having max(a.v) - min(b.v) > 1000", ["A", "B"] * 30),
]


@pytest.mark.parametrize(("head", "kinds"), FIXED)
def test_a_rule_with_a_number_of_events_keeps_no_more_bytes(head: str, kinds: list[str]) -> None:
    ports = "A a" if "b" not in head.replace("by", "") else "A a, B b"
    told = cost(head, ports)
    assert told.most_bytes is not None

    found = measured(library(head, ports), kinds)

    assert found <= told.most_bytes
    assert told.most_bytes <= 8 * found


WINDOWS = [
    ("a within 1 h by k having count(a) > 1000", "A a", "A"),
    ("a within 1 h by k having distinct(a.u) > 1000", "Wide a", "Wide"),
    ("a ; timeout(1 h) unless b by k", "A a, B b", "A"),
]


@pytest.mark.parametrize(("head", "ports", "kind"), WINDOWS)
@pytest.mark.parametrize("events", [10, 40])
def test_a_rule_with_a_window_keeps_no_more_for_each_event(
    head: str, ports: str, kind: str, events: int
) -> None:
    told = cost(head, ports)
    assert told.window is not None
    most = told.key_bytes + events * told.event_bytes

    found = measured(library(head, ports), [kind] * events)

    assert found <= most
    assert most <= 8 * found


def test_events_that_left_the_window_are_not_saved() -> None:
    head, ports = "a within 10 s by k having count(a) > 1000", "A a"
    told = cost(head, ports)
    run = library(head, ports).start()

    sizes = []
    for second in range(1_000):
        run.push(event(second, 1))
        if second % 100 == 99:
            sizes.append(len(run.snapshot()))

    in_the_window = 11
    assert told.window is not None
    assert max(sizes) < in_the_window * told.event_bytes
    # Ids become longer by a digit.
    assert sizes[-1] <= max(sizes[:5]) + 4 * in_the_window


def test_a_rule_without_a_window_is_said_to_have_no_bound() -> None:
    told = cost("a ; b having distinct(a.u) > 3")

    assert not told.is_bounded
    assert "since its last trigger" in str(told)
    assert "`within` would bound them" in str(told)


def test_costs_are_told_in_words() -> None:
    assert str(cost("a within 10 min by k having count(a) > 5", "A a")) == (
        "`R` keeps for each `k` the events of `a` of the last 10 min: "
        "some 1.7 kB for each event, and 2.6 kB for the key"
    )
    assert str(cost("a ; b by k", "Wide a, Wide b")) == (
        "`R` keeps for each `k` at most 2 events of `a` and `b`: 4.2 kB"
    )
    assert str(cost("a ; b by k keep last having b.v > a.v", "Wide a, Wide b")) == (
        "`R` keeps for each `k` at most 3 events of `a` and `b`: 5.7 kB"
    )
    assert str(cost("a ; timeout(5 min) unless a by k", "Wide a")) == (
        "`R` keeps for each `k` at most 1 event of `a`: 4.6 kB"
    )
    assert str(cost("a by k having sum(a.v) > 5", "A a")) == (
        "`R` keeps for each `k` at most 2 events of `a`: 4.0 kB"
    )
    assert str(cost("a ; b unless b keep all having distinct(a.u) > 3")) == (
        "`R` keeps all events of `a` and `b` since its last trigger or `b`: "
        "some 1.7 kB for each event; `within` would bound them"
    )


@pytest.mark.parametrize(
    ("head", "is_warned"),
    [
        ("a having avg(a.v) > 3", True),
        ("a having distinct(a.u) > 3", True),
        ("a ; timeout(1 min) keep all", True),
        ("a ; timeout(1 min)", False),
        ("a having count(a) > 3 AND sum(a.v) > 2 AND max(a.v) > 1", False),
        ("a within 1 h having avg(a.v) > 3", False),
        ("a ; timeout(1 min) keep all within 1 h", False),
    ],
)
def test_a_rule_that_must_remember_without_bound_draws_a_warning(
    head: str, is_warned: bool
) -> None:
    found = [each for each in library(head, "A a").warnings if each.code == "unbounded-memory"]

    assert bool(found) is is_warned
    assert all("`within 1 h`" in (each.hint or "") for each in found)
