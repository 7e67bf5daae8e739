"""Keys whose window or timeout has passed hold nothing: in a run, in its snapshots, in its alarms.

    ENSUE_KEYS=1000000 python -m pytest tests/engine/test_freed_state.py
    python -m tests.engine.test_freed_state ENGINE KEYS

The first asks it of a million keys that come once, for every rule; some rules always read enough
of them to be looked through. The second shows the memory of a run over them.
"""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections.abc import Iterator

import pyarrow as pa
import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.run import Run
from ensue.events.event import Event

KEYS = int(os.environ.get("ENSUE_KEYS", "4000"))
AT_ONCE = 500
IN_A_TABLE = 20_000
A_MINUTE = 600
"""How many keys come in a minute."""
A_DAY = 86_400_000_000
IN_COLUMNS = max(KEYS, 300_000)
"""More than are held before it is worth looking for those whose time has passed."""
MANY = 20_000
MOST_AT_ONCE = 110_000
"""Keys that are held at most of these, where those of a minute count."""

TYPES = """
eventtype A { attribute string k; attribute long v; };
eventtype B { attribute string k; attribute long v; };
eventtype Other {};
eventtype Out { attribute string k; };
"""
WINDOWS = {
    "last": "a ; b within 1 min by k",
    "first": "a ; b within 1 min by k bind first",
    "both": "a + b within 1 min by k bind first",
    "latest": "a ; b within 1 min by k having b.k = a.k keep all bind latest",
    "count": "a ; b within 1 min by k having count(a) > 2",
    "sum": "a within 1 min by k having sum(a.v) > 1000000000",
    "distinct": "a + b within 1 min by k keep all having distinct(a.v) > 5 AND max(b.v) > 5",
    "unless": "a ; b within 1 min by k unless a",
    "either": "(a | b) ; b within 1 min by k keep last having b.v > 5",
}
TIMEOUTS = {
    "timeout": "a ; timeout(1 min) by k",
    "timeout unless": "a ; timeout(1 min) by k unless b",
    "timeout and count": "a ; timeout(1 min) within 1 h by k having count(a) > 1",
    "timeout kept": "a ; timeout(1 min) within 1 h by k keep all",
    "timeout, then": "a ; timeout(20 s) ; b within 1 min by k",
}
EXPRESSIONS = {
    "ecl": "repeat { notify { sequential { a, timeout(1 min) } } }",
    "ecl absence": "repeat { notify { sequential { a, do { timeout(1 min) } unless { b } } } }",
}
RULES = {**WINDOWS, **TIMEOUTS, **EXPRESSIONS}
OUTPUT_FOR_EACH = ("timeout", "timeout unless", "timeout kept", *EXPRESSIONS)
"""The rules that put out something for a key that comes once."""
IN_A_FEW_SECONDS = ("first", "latest", "count", "timeout unless")
"""Some of the rules that read a million keys in columns."""


def text_of(rule: str, name: str = "R") -> str:
    if rule in EXPRESSIONS:
        return f"Out ecl {name} (A a, B b) by k {{ {EXPRESSIONS[rule]} }}"
    said = RULES[rule]
    pushed = "a" if rule in TIMEOUTS else "b" if "b" in said.replace("by k", "") else "a"
    ports = "A a, B b" if "b" in said.replace("by k", "") else "A a"
    statement = f"push new Out {{ k = {pushed}.k }}"
    return f"Out correlation {name} ({ports}) {said} {{ case true: {statement}; }}"


def library(rule: str, copies: int = 1) -> ensue.Library:
    texts = [text_of(rule, f"R{number}") for number in range(copies)]
    return ensue.parse("\n".join([TYPES, *texts]))


def once(count: int) -> Iterator[Event]:
    """Keys that come once, ten in a second."""
    for number in range(count):
        data = {"k": f"user{number}", "v": number % 7}
        yield Event(f"e{number}", "test", "A", number * 100_000, data)


def table_once(first: int, count: int) -> pa.Table:
    """The same keys, from a number on, as a table."""
    numbers = range(first, first + count)
    times = pa.array([number * 100_000 for number in numbers])
    return pa.table(
        {
            "id": [f"e{number}" for number in numbers],
            "source": ["test"] * count,
            "type": ["A"] * count,
            "time": times.cast(pa.timestamp("us", "UTC")),
            "k": [f"user{number}" for number in numbers],
            "v": [number % 7 for number in numbers],
        }
    )


def read_once(run: Run, count: int) -> int:
    """Let a run read keys that come once; how many it held at most."""
    most, pending = 0, []
    for event in once(count):
        pending.append(event)
        if len(pending) == AT_ONCE:
            run.push_all(pending)
            pending = []
            most = max(most, run.keys_held)
    run.push_all(pending)
    return max(most, run.keys_held)


@pytest.mark.usefixtures("everything_small")
@pytest.mark.parametrize("engine", ["step", "batch"])
@pytest.mark.parametrize("rule", RULES)
def test_keys_that_come_once_are_gone_when_another_key_moves_the_clock(
    rule: str, engine: str
) -> None:
    """On the way a run holds the keys of a minute, or of an hour, and some before a sweep."""
    run = library(rule).start(engine)
    empty = len(run.snapshot())

    most = read_once(run, KEYS)
    run.push(Event("o", "test", "A", KEYS * 100_000 + A_DAY, {"k": "other", "v": 0}))

    if "1 h" not in RULES[rule]:
        assert most < (
            5 * A_MINUTE + AT_ONCE if engine == "batch" else 2 * A_MINUTE + 1_024 + AT_ONCE
        )
    assert run.keys_held <= 2
    run.push(Event("p", "test", "Other", KEYS * 100_000 + 2 * A_DAY, {}))
    assert len(run.snapshot()) < empty + 700


def test_many_keys_that_come_once_are_gone_event_by_event() -> None:
    """Keys are looked through when there are twice as many as were left the last time."""
    run = library("first").start("step")
    push, empty, most = run.push, len(run.snapshot()), 0

    for number, event in enumerate(once(MANY)):
        push(event)
        if number % 1_000 == 0:
            most = max(most, run.keys_held)
    push(Event("o", "test", "A", MANY * 100_000 + A_DAY, {"k": "other", "v": 0}))
    run.advance(MANY * 100_000 + 2 * A_DAY)

    assert most < 2 * A_MINUTE + 2_048
    assert run.keys_held <= 2
    assert len(run.snapshot()) < empty + 700


@pytest.mark.parametrize("rule", RULES if KEYS == IN_COLUMNS else IN_A_FEW_SECONDS)
def test_very_many_keys_that_come_once_are_gone_in_columns(rule: str) -> None:
    engine = BatchEngine(library(rule).checked)
    empty, most, outputs = len(engine.snapshot()), 0, 0

    for first in range(0, IN_COLUMNS, IN_A_TABLE):
        outputs += len(engine.push_batch(table_once(first, IN_A_TABLE)))
        most = max(most, engine.keys_held)
    outputs += len(engine.finish(IN_COLUMNS * 100_000 + A_DAY))

    assert outputs == (IN_COLUMNS if rule in OUTPUT_FOR_EACH else 0)
    assert most <= MOST_AT_ONCE
    assert len(engine.snapshot()) < empty + 700


@pytest.mark.parametrize("rule", ["last", "ecl", "ecl absence"])
def test_keys_of_many_rules_are_gone_as_well(rule: str) -> None:
    run = library(rule, copies=20).start("step")
    empty = len(run.snapshot())

    most = read_once(run, KEYS)
    run.push(Event("o", "test", "A", KEYS * 100_000 + A_DAY, {"k": "other", "v": 0}))

    assert most < 2 * A_MINUTE + 1_024 + AT_ONCE
    assert run.keys_held <= 2
    run.push(Event("p", "test", "Other", KEYS * 100_000 + 2 * A_DAY, {}))
    assert len(run.snapshot()) < empty + 1_500


@pytest.mark.usefixtures("everything_small")
@pytest.mark.parametrize("engine", ["step", "batch"])
@pytest.mark.parametrize("rule", RULES)
def test_a_snapshot_holds_nothing_once_the_clock_has_moved_by_other_events(
    rule: str, engine: str
) -> None:
    """An event that no port wants moves the clock, too."""
    run = library(rule).start(engine)
    empty = len(run.snapshot())
    run.push_all(list(once(2_000)))
    full = len(run.snapshot())
    run.push(Event("o", "test", "Other", A_DAY, {}))

    assert full > empty + 2_000
    assert len(run.snapshot()) < empty + 600


@pytest.mark.usefixtures("everything_small")
@pytest.mark.parametrize("engine", ["step", "batch"])
@pytest.mark.parametrize(
    "said", ["a ; timeout(1 h) unless a by k", "a ; timeout(1 h) unless b by k"]
)
def test_a_timeout_that_is_put_off_leaves_no_alarms_behind(said: str, engine: str) -> None:
    """Of ten keys whose timeouts are put off again and again there are some alarms, not more."""
    text = f"Out correlation R (A a, B b) {said} {{ case true: push new Out {{ k = a.k }}; }}"
    run = ensue.parse(TYPES + text).start(engine)
    sizes = []
    gc.collect()
    tracemalloc.start()
    for second in range(300):
        kind = "B" if "unless b" in said and second % 2 else "A"
        run.push_all(
            [
                Event(f"{second}-{key}", "test", kind, second * 1_000_000, {"k": f"{key}", "v": 0})
                for key in range(10)
            ]
        )
        if second in (100, 299):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()

    assert sizes[1] < sizes[0] + 50_000


def test_a_key_stays_where_the_definitions_count_from_its_start() -> None:
    """`every` goes on for each key that has come; a finished expression stays finished."""
    ticking = "Out correlation R (A a, every 1 h t) t by k { case true: push new Out {}; }"
    finished = "Out ecl R (A a) by k { notify { sequential { a, timeout(1 s) } } }"
    for text, made in ((ticking, 24), (finished, 0)):
        run = ensue.parse(TYPES + text).start("step")
        first = Event("e", "test", "A", 0, {"k": "x", "v": 0})
        run.push(first)
        run.advance(2_000_000)
        run = ensue.parse(TYPES + text).resume(run.snapshot())
        run.push(Event("f", "test", "A", 3_000_000, {"k": "x", "v": 0}))

        assert len(run.advance(A_DAY)) == made


def main(engine: str, keys: int) -> None:
    for rule in RULES:
        run = library(rule).start(engine)
        sizes = []
        for number, event in enumerate(once(keys)):
            run.push(event)
            if number % (keys // 5) == 0:
                with open("/proc/self/statm") as file:
                    sizes.append(int(file.read().split()[1]) * 4 // 1024)
        print(rule, "megabytes:", sizes, "keys held:", run.keys_held)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
