"""Chains with alternatives, `(a | b) ; c`, run from their latest matches."""

from __future__ import annotations

import ensue
from ensue.events.event import Event

TYPES = """
eventtype In { attribute string k; attribute long v; };
eventtype A : In {}; eventtype B : In {}; eventtype C : In {};
"""


def run_of(said: str, cases: str = "case true: push c;") -> ensue.Run:
    text = f"In correlation R (A a, B b, C c) {said} {{ {cases} }}"
    return ensue.parse(TYPES + text).start("step")


def pushed(run: ensue.Run, types: str) -> list[dict[str, str]]:
    """What events put out that come one in a second: their labels, and what caused them."""
    outputs = []
    for second, name in enumerate(types, 1):
        event = Event(f"{name}{second}", "test", name, second * 1_000_000, {"k": "x", "v": second})
        outputs += run.push(event)
    return [{"labels": each.extensions["labels"]} | _causes(each) for each in outputs]


def _causes(output: Event) -> dict[str, str]:
    return {"causes": output.extensions["causes"]}


def test_alternatives_hold_their_latest_matches_and_nothing_else() -> None:
    """However many events come, and without a window."""
    few, many = (run_of("(a | b) ; c keep all bind latest by k") for _ in range(2))
    pushed(few, "AB" * 2)
    pushed(many, "AB" * 200)

    assert len(many.snapshot()) < len(few.snapshot()) + 20


def test_the_last_of_alternatives_is_bound_by_latest_and_each_by_last() -> None:
    latest = run_of("(a | b) ; c keep all bind latest")
    last = run_of("(a | b) ; c keep all")

    assert pushed(latest, "ABC") == [{"labels": "", "causes": "B2,C3"}]
    assert pushed(last, "ABC") == [{"labels": "", "causes": "A1,B2,C3"}]


def test_an_alternative_that_has_left_the_window_is_not_bound() -> None:
    assert pushed(run_of("(a | b) ; c within 2 s keep all"), "ABCC") == [
        {"labels": "", "causes": "A1,B2,C3"},
        {"labels": "", "causes": "B2,C4"},
    ]


def test_a_label_is_active_by_an_event_from_before_its_place_was_reached() -> None:
    """All that is remembered counts, so that such an event has to be kept."""
    run = run_of("c ; (l1:a | l2:b) keep all", "case true: push b;")

    assert pushed(run, "ACB") == [{"labels": "l1,l2", "causes": "C2,B3"}]


def test_what_a_trigger_forgets_makes_no_label_active() -> None:
    run = run_of("(l1:a | l2:b) ; c keep none having c.v > 0")

    assert pushed(run, "ACBC") == [
        {"labels": "l1", "causes": "A1,C2"},
        {"labels": "l2", "causes": "B3,C4"},
    ]
