"""Many rules of the batch engine over one stream: what they share, and what they let go.

That rules in groups put out what they put out alone is tested by the hunt `engines`.
"""

from __future__ import annotations

from random import Random

import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.core.machine_tables import RuleTimers
from ensue.engine.core.shapes import shape_of
from ensue.events.arrow import table_of
from ensue.events.event import Event
from ensue.machine.plan import plan
from tests.agreement.observed import as_text
from tests.engine.random_rules import (
    TYPES,
    events,
    expected_of,
    library_text,
    reading,
    rule,
)


def library_of(seed: int, kind: str, rules: int = 9) -> ensue.Library:
    return ensue.parse(library_text(seed, kind, rules))


@pytest.mark.parametrize("kind", ["windows", "timers", "mixed"])
def test_a_table_of_events_is_read_by_all_rules_at_once(kind: str) -> None:
    """Outputs in the order of events, then of the library; alarms before events of their time."""
    library, given = library_of(3, kind, rules=40), events(4, 200)
    types, until = library.checked.types, given[-1].time + 9000
    table = table_of(given, types)
    engine = BatchEngine(library.checked)
    parts = [engine.push_batch(part) for part in (table.slice(0, 120), table.slice(120))]
    parts.append(engine.finish(until))
    found = [(row["id"], row["causes"]) for part in parts for row in part.to_pylist()]
    run = library.start("reference")
    made = [o for event in given for o in run.push(event)] + run.finish(until)

    assert found == [(o.id, o.extensions["causes"]) for o in made]


def test_lengths_of_timers_do_not_change_the_machine() -> None:
    """Rules of one shape are built state by state alike, so they can share a table."""
    shapes: dict[object, list[ensue.Library]] = {}
    for seed in range(120):
        random = Random(seed)
        text = rule("R", Random(seed % 20), "timers", "by k")
        text = text.replace("1 ms", f"{random.choice([1, 4])} ms").replace("5 ms", "7 ms")
        library = ensue.parse(TYPES + text)
        (correlation,) = library.checked.correlations
        shapes.setdefault(shape_of(correlation), []).append(library)
    shared = 0
    for libraries in shapes.values():
        built = set()
        for library in libraries:
            (correlation,) = library.checked.correlations
            machine = plan(correlation).needed_machine
            timers = RuleTimers(correlation, machine)
            built.add(
                (
                    tuple(each.state for each in timers.timeouts),
                    machine.initial,
                    machine.atoms,
                    tuple((each.enabling, each.clear, each.target) for each in machine.transitions),
                )
            )
        shared += len(libraries) - 1
        assert len(built) == 1
    assert shared > 60


@pytest.mark.usefixtures("everything_small")
def test_events_that_no_key_holds_are_forgotten() -> None:
    """However many keys there have been; what is held is put out as ever."""
    library = ensue.parse(
        TYPES
        + "Found correlation A (T a, U b) a ; b within 5 ms by k { case true: push new Found { }; }"
        + "Found correlation B (U a, T b) a + b within 3 ms by k { case true: push new Found { }; }"
    )
    given = [
        reading(f"e{n}.{m}", "TU"[m % 2], n * 1000, f"k{m // 3}", 1)
        for n in range(60)
        for m in range(10)
    ]
    engine = BatchEngine(library.checked)
    found = [
        as_text(output)
        for n in range(60)
        for output in engine.read_all(given[10 * n : 10 * n + 10])
    ]

    assert found == expected_of(library, given, given[-1].time)
    assert engine.keys_held < 40


def test_rules_without_a_key_for_an_event_count_it() -> None:
    library = ensue.parse(
        TYPES
        + "Found correlation A (T a, T b) a ; b within 1 s by k { case true: push new Found { }; }"
        + "Found correlation B (U a, U b) a + b within 2 s by k { case true: push new Found { }; }"
        + "Noted ecl C (V a) by k { repeat { notify { sequential { a, timeout(1 s) } } } }"
    )
    engine = BatchEngine(library.checked)
    engine.read_all([reading(f"e{n}", "TUV"[n % 3], n, None, n) for n in range(9)])

    assert engine.counts.without_key == {"A": 9, "B": 3, "C": 3}


def test_a_rule_with_a_bound_timer_is_joined_by_one_that_asks_for_its_time() -> None:
    """A rule that was alone until then has not kept the time of the firing."""
    asking = [
        f"When correlation R{n} (T a, every 2 ms t) t ; a by k"
        f" {{ case true: push new When {{ {asked} }}; }}"
        for n, asked in enumerate(["n = a.n", "at = t.time", "at = t.time, n = a.n"])
    ]
    made: list[list[Event]] = []
    for engine in ("batch", "reference"):
        run = ensue.parse(TYPES + asking[0]).start(engine)
        found: list[Event] = []
        for n in range(9):
            # Now and then a timer has fired just before a rule is added.
            found += run.advance(n * 1500 - 100) if n else []
            if n == 2:
                run.add(asking[1])
            if n == 6:
                run.add(asking[2])
            found += run.push(reading(f"e{n}", "T", n * 1500, "x", n))
        made.append(found)

    assert made[0] == made[1]
    assert {each.extensions["correlation"] for each in made[0]} == {"R0", "R1", "R2"}


def test_the_next_due_time_is_that_of_the_first_alarm_of_any_rule() -> None:
    text = "\n".join(
        f"Noted ecl R{n} (T a where n = {n}, U b) by k"
        f" {{ notify {{ sequential {{ a, timeout({9 - n} s) }} }} }}"
        for n in range(5)
    )
    engine = BatchEngine(ensue.parse(TYPES + text).checked)
    assert engine.next_due() is None
    engine.read_all([reading("0", "U", -5, "y", 7)])
    assert engine.next_due() is None
    engine.read_all([reading("1", "T", 0, "x", 1)])
    assert engine.next_due() == 8_000_000
    engine.read_all([reading("2", "T", 1_000_000, "x", 4)])
    assert engine.next_due() == 6_000_000
    assert len(engine.advance(7_000_000)) == 1
    assert engine.next_due() == 8_000_000


@pytest.mark.parametrize("seed", [60, 61])
def test_a_timer_that_is_stopped_is_not_the_next_one_due(seed: int) -> None:
    """After any event, one at a time."""
    library = library_of(seed, "timers")
    run, judge = library.start("batch"), library.start("reference")
    for event in events(seed, 60):
        assert run.push(event) == judge.push(event)
        assert run.next_due() == judge.next_due()
