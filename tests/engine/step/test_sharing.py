"""What the step engine makes once, or not before it is needed."""

from __future__ import annotations

import pytest

import ensue
from ensue.events.event import Event

PAIRS = """
eventtype A { attribute string k; };
eventtype Out { attribute string k; };
Out correlation Pair (A a) a ; a by k { case true: push new Out { k = a.k }; }
"""


def event(number: int, kind: str, **data: str) -> Event:
    return Event(f"e{number}", "s", kind, number, data)


def test_the_count_of_outputs_at_a_moment_outlives_a_snapshot() -> None:
    library = ensue.parse(PAIRS)
    run = library.start("step")
    same = [Event("e", "s", "A", 5, {"k": "x"}) for _ in range(4)]
    first = [each.id for given in same[:2] for each in run.push(given)]
    resumed = library.resume(run.snapshot())
    second = [each.id for given in same[2:] for each in resumed.push(given)]

    assert (first, second) == (["Pair:e@5:x:1"], ["Pair:e@5:x:2"])


def test_an_event_that_only_resets_begins_no_key() -> None:
    """What it would be bound for has gone by the time that anybody looks."""
    run = ensue.parse(
        "eventtype A { attribute string k; }; eventtype R { attribute string k; };"
        "eventtype Out { attribute string k; };"
        "Out correlation Pair (A a, R r) l:(a ; a) | m:r by k"
        " { case l: push new Out { k = a.k }; }"
    ).start("step")
    run.push(event(0, "R", k="x"))
    before = run.keys_held
    run.push(event(1, "A", k="x"))
    run.push(event(2, "R", k="x"))
    run.push(event(3, "A", k="x"))

    assert before == 0
    assert [each.id for each in run.push(event(4, "A", k="x"))] == ["Pair:e4@4:x:1"]


@pytest.mark.parametrize("bind", ["", "bind first"])
@pytest.mark.parametrize("split", range(8))
def test_a_rule_of_many_places_has_them_all_after_a_snapshot(bind: str, split: int) -> None:
    """Some of the places of a key are kept apart from the others; nobody can tell."""
    names = "abcdefg"
    library = ensue.parse(
        "".join(f"eventtype {n.upper()} {{ attribute string k; }};" for n in names)
        + "eventtype Out { attribute string first; attribute string last; };"
        + f"Out correlation Long ({', '.join(f'{n.upper()} {n}' for n in names)})"
        + f" (a + b + c + d) ; (e + (f ; a)) ; g {bind}"
        + " { case true: push new Out { first = a.k, last = g.k }; }"
    )
    kinds = "ABACDDEFFAG"
    events = [event(number, kind, k=f"k{number}") for number, kind in enumerate(kinds)]
    plain, run = library.start("reference"), library.start("step")
    expected = [each for given in events for each in plain.push(given)]
    made = [each for given in events[:split] for each in run.push(given)]
    resumed = library.resume(run.snapshot())
    made += [each for given in events[split:] for each in resumed.push(given)]

    assert len(expected) == 1
    assert made == expected
