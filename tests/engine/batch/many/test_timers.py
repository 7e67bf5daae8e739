"""Timers in compiled loops: they fire when the definitions say, and nothing is kept for them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.events.event import Event
from tests.agreement.ways import in_pieces
from tests.engine.batch.moving import moved

TYPES = """
eventtype A { attribute short k; attribute long v; };
eventtype B { attribute short k; attribute long v; };
eventtype Out { attribute short k; attribute timestamp at; attribute long v; };
eventtype Told {};
eventtype Late { attribute short k; attribute timestamp at; attribute long v; };
"""
RULES = {
    "every": (
        "Out correlation X (A a, every 3 s t) a ; t by k"
        " { case true: push new Out { k = a.k, at = t.time, v = a.v }; }"
    ),
    "deadline": (
        "Out correlation X (A a, B b, deadline 4 s d) a ; b || d by k"
        " { case true: push new Out { k = b.k, at = d.time, v = a.v }; }"
    ),
    "two timers at once": (
        "Out correlation X (A a, every 2 s s, every 4 s t, deadline 4 s d) s + t || t ; d || a + s"
        " by k { case true: push new Out { at = t.time, v = a.v }; push new Out { at = s.time }; }"
    ),
    "first bound": (
        "Out correlation X (A a, every 2 s t) a + t ; a by k bind first"
        " { case true: push new Out { at = t.time, v = a.v }; }"
    ),
    "in a window": (
        "Out correlation X (A a, B b, every 2 s t) l:(a ; t) | m:(b + t) within 3 s by k"
        " { case l: push new Out { at = t.time, v = a.v }; case m: push new Out { v = b.v }; }"
    ),
    "changing labels in a window": (
        "Out correlation X (A a, B b, deadline 3 s d) l:(a) + m:(b | d) within 5 s by k"
        " { case m: revive(l); case l: push new Out { at = d.time, v = a.v }; abort(l); }"
    ),
    "before the first case": (
        "Out correlation X (A a, every 2 s t) a ; t by k"
        " { push new Out { v = 0 }; case true: push new Out { v = a.v }; }"
    ),
    "timeout": (
        "Told ecl X (A a, B b) by k"
        " { repeat { notify { sequential { a, do { timeout(3 s) } unless { b } } } } }"
    ),
    "timeouts that are due together": (
        "Told ecl X (A a, B b) by k { parallel {"
        " repeat { notify { sequential { a, timeout(2 s) } } },"
        " repeat { push(Told) { sequential { a, b, timeout(2 s) } } },"
        " repeat { notify { do { timeout(4 s) } unless { b } } } } }"
    ),
    "timeout beside a timer": (
        "Told ecl X (A a, every 2 s t) by k"
        " { repeat { notify { sequential { true, timeout(2 s), t } } } }"
    ),
    "finished": "Told ecl X (A a, every 1 s t) by k { notify { accumulate { a, t } } }",
    "predicates": (
        "Told ecl X (A a, every 2 s t) by k"
        " { repeat { notify { sequential { <v > 3>, <NOT EXISTS v> } } } }"
    ),
    "without a key": (
        "Out correlation X (A a, B b, deadline 5 s d) a + b || d"
        " { case true: push new Out { v = a.v, at = d.time }; }"
    ),
    "feeding": (
        "Out correlation X (A a, every 2 s t) a ; t by k { case true: push new Out { k = a.k }; }\n"
        "Late correlation Y (Out o from X, every 2 s t, B b) o ; t || b + o by k"
        " { case true: push new Late { k = o.k, at = t.time, v = 1 }; }"
    ),
    "fed by an alarm": (
        "Late correlation Y (Out o from X, every 2 s t, B b) t ; o || b + o by k"
        " { case true: push new Late { k = b.k, at = t.time, v = 1 }; }\n"
        "Out correlation X (A a, every 2 s t) a ; t by k { case true: push new Out { k = a.k }; }"
    ),
}


def stream(seed: int) -> list[Event]:
    """Three keys, many ties, now and then a long silence, and an id that comes twice."""
    draw = Random(seed)
    now, made = 0, []
    for number in range(60):
        now += draw.choice([0, 0, 1_000_000, 1_000_000, 500_000, 9_000_000])
        kind = draw.choice(["A", "A", "B", "Other"])
        data = {"k": draw.randrange(3), "v": draw.randrange(7)}
        made.append(Event(f"e{number - number % 9 // 8}", "s", kind, now, data))
    return made


def by_reference(library: ensue.Library, events: Sequence[Event], until: int) -> list[Event]:
    run = library.start("reference")
    return [output for event in events for output in run.push(event)] + run.finish(until)


@pytest.mark.parametrize("name", RULES)
def test_timers_agree_with_the_reference(name: str) -> None:
    """Cut into odd batches, with snapshots between them, and a clock that goes on at the end."""
    library = ensue.parse(TYPES + RULES[name])
    for seed in range(6):
        events = stream(seed)
        until = events[-1].time + 10_000_000
        draw = Random(seed)
        engine = BatchEngine(library.checked)
        made: list[Event] = []
        for piece in in_pieces(events, draw):
            made += engine.read_all(piece)
            if draw.random() < 0.3:
                engine = moved(engine, library)
        made += engine.advance(until)

        expected = by_reference(library, events, until)
        assert made == expected
        assert expected


@pytest.mark.usefixtures("everything_small")
def test_a_table_may_be_emptied_on_the_way() -> None:
    """Past its budget a table with timers is made anew from the states that keys are in."""
    library = ensue.parse(TYPES + RULES["two timers at once"])
    engine = BatchEngine(library.checked)
    events = stream(1)
    made = [output for piece in in_pieces(events, Random(1)) for output in engine.read_all(piece)]

    assert made == by_reference(library, events, events[-1].time)


@pytest.mark.parametrize("name", ["every", "timeout", "in a window"])
def test_a_snapshot_does_not_grow_with_what_was_read(name: str) -> None:
    library = ensue.parse(TYPES + RULES[name])
    engine = BatchEngine(library.checked)
    sizes = []
    for hour in range(3):
        first = hour * 3_600_000_000
        engine.read_all(
            [
                Event(f"{n}", "s", "A", first + n * 1_000_000, {"k": n % 5, "v": n})
                for n in range(900)
            ]
        )
        sizes.append(len(engine.snapshot()))

    assert sizes[2] < sizes[0] * 1.1


@pytest.mark.parametrize(("said", "path"), [("a ; b", "related"), ("a ; b || b ; a", "events")])
def test_rules_that_remember_events_are_saved_without_their_past(said: str, path: str) -> None:
    library = ensue.parse(
        TYPES
        + f"A correlation X (A a, B b) {said} within 2 s by k bind first {{ case true: push a; }}"
    )
    engine = BatchEngine(library.checked)
    assert engine.paths["X"].name == path
    sizes = []
    # All times take as many bytes.
    for hour in range(2, 5):
        first = hour * 3_600_000_000
        events = [
            Event(f"{n}", "s", "A", first + n * 1_000_000, {"k": n % 5, "v": n}) for n in range(900)
        ]
        engine.read_all(events)
        sizes.append(len(engine.snapshot()))

    assert sizes[2] < sizes[0] * 1.1


def test_a_clock_that_moves_before_any_event_changes_nothing() -> None:
    """Also for a rule of so many ports that what an event matches needs more than a byte."""
    ports = ", ".join(f"A p{number} where v = {number}" for number in range(12))
    library = ensue.parse(
        TYPES + f"Out correlation X ({ports}, every 1 s t) p11 ; t by k"
        " { case true: push new Out { v = p11.v }; }"
    )
    engine = BatchEngine(library.checked)
    engine.advance(1_000_000)
    made = engine.read_all([Event("1", "s", "A", 2_000_000, {"k": 1, "v": 11})])
    made += engine.advance(5_000_000)

    assert [output.time for output in made] == [3_000_000]


def test_a_clock_that_moves_alone_fires_timeouts_of_more_than_a_word_of_atoms() -> None:
    modes = " ".join(f"in (<v = {n}>) do {{ notify {{ timeout(2 s) }} }}" for n in range(20))
    library = ensue.parse(TYPES + f"A ecl X (A a) {{ modes {{ {modes} }} }}")
    events = [Event(f"{n}", "s", "A", n * 3_000_000, {"k": 1, "v": n}) for n in range(4)]

    found = list(library.run(events, engine="batch", until=20_000_000))

    assert found == list(library.run(events, engine="reference", until=20_000_000))
    assert found
