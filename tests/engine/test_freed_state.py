"""Keys whose window has passed hold nothing: in a run, in its snapshots, in Spark's state.

    python -m tests.engine.test_freed_state ENGINE KEYS

shows the memory of a run over keys that come once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch import engine as batch_engine
from ensue.engine.run import Run
from ensue.engine.step import StepStream
from ensue.events.event import Event

TYPES = """
eventtype A { attribute string k; };
eventtype B { attribute string k; };
eventtype Other {};
eventtype Out { attribute string k; };
"""
RULES = {
    "last": "a ; b within 1 min by k",
    "first": "a ; b within 1 min by k bind first",
    "both": "a + b within 1 min by k bind first",
    "latest": "a ; b within 1 min by k having b.k = a.k keep all bind latest",
    "count": "a ; b within 1 min by k having count(a) > 2",
}


def library(rule: str) -> ensue.Library:
    text = (
        f"Out correlation R (A a, B b) {RULES[rule]} {{ case true: push new Out {{ k = b.k }}; }}"
    )
    return ensue.parse(f"{TYPES} {text}")


def once(count: int) -> Iterator[Event]:
    """Keys that come once, a hundred in a second."""
    for number in range(count):
        yield Event(f"e{number}", "test", "A", number * 10_000, {"k": f"user{number}"})


def held(run: Run) -> int:
    """For how many keys the engine of a run has something."""
    engine = run._engine
    if isinstance(engine, StepStream):
        return sum(len(rule.held()) for rule in engine.rules)
    assert isinstance(engine, BatchEngine)
    return engine._key_count() + sum(
        len(each.instances) for each in engine.correlations.values() if not hasattr(each, "keys")
    )


@pytest.mark.parametrize("engine", ["step", "batch"])
@pytest.mark.parametrize("rule", RULES)
def test_a_run_holds_the_keys_of_one_window(
    rule: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000 keys, 6,000 of which are in a window, at most so many again before a sweep."""
    monkeypatch.setattr(batch_engine, "KEYS_BEFORE_A_SWEEP", 1000)
    run = library(rule).start(engine)
    most = 0
    events = list(once(20_000))
    for begin in range(0, len(events), 500):
        run.push_all(events[begin : begin + 500])
        most = max(most, held(run))

    assert most < 4 * 6_000 + 1_000 if engine == "batch" else most < 2 * 6_001
    assert run.push(Event("b", "test", "B", events[-1].time, {"k": "user19999"})) == [] or rule in (
        "last",
        "first",
        "both",
        "latest",
    )


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
    run.push(Event("o", "test", "Other", 3_600_000_000, {}))

    assert full > empty + 2_000
    assert len(run.snapshot()) < empty + 600


def main(engine: str, keys: int) -> None:
    for rule in RULES:
        run = library(rule).start(engine)
        sizes = []
        for number, event in enumerate(once(keys)):
            run.push(event)
            if number % (keys // 5) == 0:
                with open("/proc/self/statm") as file:
                    sizes.append(int(file.read().split()[1]) * 4 // 1024)
        print(rule, "megabytes:", sizes, "keys held:", held(run))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
