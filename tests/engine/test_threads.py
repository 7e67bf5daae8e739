"""A run that several threads use: their calls are taken one after the other."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

import ensue
from ensue.events.event import Event

from .rules import SECOND

THREADS, EVENTS = 8, 300

RULE = """
eventtype A { attribute string k; };
eventtype B { attribute string k; };
eventtype Out { attribute string k; };
Out correlation Pair (A a, B b) a ; b by k { case true: push new Out { k = b.k }; }
Out correlation Count (A a) a{3} by k { case true: push new Out { k = a.k }; }
Out ecl Late (A a, B b) by k
    { repeat { notify { sequential { a, do { timeout(1 h) } unless { b } } } } }
"""


def in_threads(work: Callable[[int], None]) -> None:
    """Run a function in all threads at once; an exception in any of them fails the test."""
    failures: list[BaseException] = []
    gate = threading.Barrier(THREADS)

    def call(number: int) -> None:
        try:
            gate.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def events_of(thread: int) -> list[Event]:
    """Events of one moment, under keys that only this thread has."""
    return [
        Event(f"{thread}-{n}", "test", "AB"[n % 2], SECOND, {"k": f"{thread}-{n // 10}"})
        for n in range(EVENTS)
    ]


@pytest.mark.parametrize("engine", ["step", "batch", "reference"])
def test_no_output_is_lost_or_doubled(engine: str) -> None:
    library = ensue.parse(RULE)
    alone = library.start(engine)
    expected = Counter(
        output.id for thread in range(THREADS) for output in alone.push_all(events_of(thread))
    )
    run = library.start(engine)
    found: list[list[Event]] = [[] for _ in range(THREADS)]

    def work(thread: int) -> None:
        events = events_of(thread)
        for event in events[:100]:
            found[thread] += run.push(event)
        found[thread] += run.push_all(events[100:200])
        for event in events[200:]:
            found[thread] += run.push_iter(event)

    in_threads(work)
    assert Counter(output.id for outputs in found for output in outputs) == expected
    assert run.counts == alone.counts
    # Keys have started in another order, and so their timers fire.
    last, others = run.finish("2100-01-01T00:00:00Z"), alone.finish("2100-01-01T00:00:00Z")
    assert sorted(output.id for output in last) == sorted(output.id for output in others)


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_rules_and_snapshots_can_be_asked_for_meanwhile(engine: str) -> None:
    library = ensue.parse(RULE)
    run = library.start(engine)

    def work(thread: int) -> None:
        for number, event in enumerate(events_of(thread)[:60]):
            run.push(event)
            if number % 20 == thread:
                assert run.snapshot()
            if thread == 0 and number % 20 == 10:
                run.add(f"Out correlation New{number} (A a) a {{ case true: push new Out {{}}; }}")
                run.remove(f"New{number}")

    in_threads(work)
    assert run.counts.events == THREADS * 60
