"""Rules that wait for the clock behind a chain agree with the definitions, however they are cut."""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.events.event import Event

TYPES = """
eventtype A { attribute string k; attribute long v; };
eventtype B : A {};
eventtype C { attribute string k; attribute long v; };
eventtype Out { attribute string k; attribute long v, w; };
"""
RULES = [
    "a ; timeout(5 s) by k",
    "a ; timeout(5 s) by k unless b",
    "a ; timeout(5 s) by k unless a",
    "a ; b ; timeout(3 s) within 9 s by k keep all bind latest having b.v >= a.v",
    "(a + c) ; timeout(2 s) by k keep last bind latest",
    "l:(a ; c ; timeout(4 s)) by k keep all within 8 s",
    "a ; timeout(1 s) having a.v > 3 by k keep all bind latest unless c",
]
SECOND = 1_000_000


def library() -> ensue.Library:
    pushed = "push new Out { k = a.k, v = a.v, w = c.v }"
    texts = [
        f"Out correlation R{number} (A a, B b, C c) {rule} {{ case true: {pushed}; }}"
        for number, rule in enumerate(RULES)
    ]
    return ensue.parse("\n".join([TYPES, *texts]))


def drawn(seed: int, count: int = 60) -> list[Event]:
    draw, time, found = Random(seed), 0, []
    for number in range(count):
        time += draw.choice([0, 0, 500_000, SECOND, SECOND, 3 * SECOND])
        data = {"k": draw.choice("xyz"), "v": draw.randrange(8)}
        found.append(Event(f"e{number}", "s", draw.choice("AABC"), time, data))
    return found


@pytest.mark.usefixtures("everything_small")
@pytest.mark.parametrize("seed", range(6))
def test_odd_batches_with_snapshots_fire_by_the_definitions(seed: int) -> None:
    given, draw = drawn(seed), Random(seed)
    run, judge = library().start("batch"), library().start("reference")
    while given:
        size = draw.randrange(1, 20)
        piece, given = given[:size], given[size:]

        assert run.push_all(piece) == judge.push_all(piece)
        if draw.random() < 0.3:
            run = library().resume(run.snapshot())
    assert run.finish(400 * SECOND) == judge.finish(400 * SECOND)


@pytest.mark.parametrize("seed", range(6, 12))
def test_what_waits_moves_between_engines(seed: int) -> None:
    draw, engine = Random(seed), "step"
    run, judge = library().start(engine), library().start("reference")
    for event in drawn(seed):
        if draw.random() < 0.2:
            engine = "batch" if engine == "step" else "step"
            run = library().resume(run.snapshot(), engine=engine)

        assert run.push(event) == judge.push(event)
    assert run.finish(400 * SECOND) == judge.finish(400 * SECOND)


def test_of_keys_that_are_due_together_the_one_with_the_oldest_last_event_goes_first() -> None:
    text = "Out correlation R (A a, C c) a ; timeout(5 s) by k { case true: push a; }"
    loaded = ensue.parse(TYPES + text.replace("Out correlation", "A correlation"))
    given = [("A", "x", 0), ("A", "y", 0), ("C", "x", 1)]
    for engine in ("reference", "batch"):
        run = loaded.start(engine)
        run.push_all(
            [
                Event(f"{kind}{key}", "s", kind, second * SECOND, {"k": key, "v": 0})
                for kind, key, second in given
            ]
        )

        assert [each.id for each in run.advance(9 * SECOND)] == ["Ay", "Ax"]
