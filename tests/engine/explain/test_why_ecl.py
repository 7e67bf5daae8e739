"""What led to an output of an ECL expression, and what of the round under way is there."""

from __future__ import annotations

import pytest

import ensue
from ensue.engine.explain.explainer import WhyNot, WhyOutput
from ensue.engine.run import Run
from ensue.events.event import Event

SECOND = 1_000_000
ABSENCE = "repeat { sequential { a, notify { do { timeout(5 s) } unless { b } } } }"


def run_of(body: str) -> Run:
    types = "eventtype A {} eventtype B {} eventtype C {} eventtype Out {}"
    return ensue.parse(f"{types} Out ecl X (A a, B b, C c) {{ {body} }}").start(explain=True)


def pushed(run: Run, letters: str, first: int = 0) -> list[Event]:
    """An event each second, called by its type and second; what the last one put out."""
    made: list[Event] = []
    for second, letter in enumerate(letters, first):
        type_ = letter.upper()
        made = run.push(Event.of(type_, time=second * SECOND, id=f"{letter}{second}"))
    return made


def causes(run: Run, output: Event) -> list[str]:
    why = run.why(output)
    assert isinstance(why, WhyOutput)
    return [each.reading.event_id or each.part for each in why.causes]


def complete(run: Run) -> list[str]:
    why = run.why("X")
    assert isinstance(why, WhyNot)
    return [each.reading.event_id or each.part for each in why.done]


def test_what_had_to_come_before_a_push_is_a_cause_of_its_output() -> None:
    run = run_of(ABSENCE)
    pushed(run, "a")
    (output,) = run.advance(10 * SECOND)

    assert causes(run, output) == ["a0", "the clock"]


@pytest.mark.parametrize(
    ("body", "letters", "expected"),
    [
        ("sequential { a, b, notify { c } }", "abc", ["a0", "b1", "c2"]),
        ("sequential { a, repeat { notify { b } } }", "abcb", ["a0", "b3"]),
        ("sequential { a, accumulate { b, notify { c } } }", "abc", ["a0", "c2"]),
        ("accumulate { a, notify { c } }", "ac", ["c1"]),
        ("sequential { accumulate { a, b }, notify { c } }", "bac", ["b0", "a1", "c2"]),
        (
            "modes { in (false) do { false } in (a) do { repeat { notify { b } } } }",
            "abb",
            ["a0", "b2"],
        ),
        ("repeat { sequential { a, notify { b } } }", "abcab", ["a3", "b4"]),
    ],
)
def test_only_what_a_push_had_to_wait_for_is_a_cause(
    body: str, letters: str, expected: list[str]
) -> None:
    run = run_of(body)
    (output,) = pushed(run, letters)

    assert causes(run, output) == expected


def test_what_came_before_the_push_under_way_is_complete() -> None:
    run = run_of(ABSENCE)
    pushed(run, "a")

    assert complete(run) == ["a0"]


def test_a_round_that_is_over_leaves_nothing_complete() -> None:
    run = run_of(ABSENCE)
    pushed(run, "ab")

    assert complete(run) == []
