"""Every store answers as the definitions do, over random histories and random filters.

The hunts `histories` and `database-histories` play as many as there is time for.
"""

from __future__ import annotations

from random import Random

import pytest

from ensue.history import History
from ensue.lang.expressions.text.parsing import parse_expression
from tests.history.generator import Generator
from tests.history.judge import Judge, Known


@pytest.mark.parametrize("seed", range(3))
def test_matches_are_those_of_the_definitions(url: str, seed: int) -> None:
    made = Generator(Random(seed))
    with History.open(url) as history:
        judge = Judge([])
        for number in range(30):
            event = made.event(number)
            text = made.filter(depth=3)
            expression = parse_expression(text)

            assert history.matches(text, event) == judge.matches(expression, Known.of(event)), text

            history.add(event)
            judge = Judge([*judge.stored, Known.of(event)])


@pytest.mark.parametrize("seed", range(2))
def test_what_is_found_is_what_matches(url: str, seed: int) -> None:
    made = Generator(Random(1000 + seed))
    events = [made.event(number) for number in range(40)]
    judge = Judge([Known.of(event) for event in events])
    with History.open(url) as history:
        history.add_all(events)
        for _ in range(10):
            text = made.filter(depth=2)
            expression = parse_expression(text)
            found = [event.id for event in history.find(text)]
            expected = [each.event for each in judge.stored if judge.matches(expression, each)]

            assert found == [event.id for event in sorted(expected, key=lambda each: each.time)], (
                text
            )


@pytest.mark.parametrize("seed", range(2))
def test_uncertain_times_match_surely_and_possibly_as_defined(url: str, seed: int) -> None:
    made = Generator(Random(2000 + seed), ticks=8, uncertain=True)
    with History.open(url) as history:
        judge = Judge([])
        for number in range(12):
            event = made.event(number)
            text = made.filter(depth=2)
            expression = parse_expression(text)
            known = Known.of(event)

            assert history.matches(text, event) == judge.matches(expression, known), text
            assert history.possibly(text, event) == judge.matches(expression, known, True), text

            history.add(event)
            judge = Judge([*judge.stored, known])


@pytest.mark.parametrize("seed", range(1))
def test_a_history_larger_than_a_page_is_searched_to_its_end(url: str, seed: int) -> None:
    made = Generator(Random(3000 + seed), ticks=60)
    events = [made.event(number) for number in range(500)]
    judge = Judge([Known.of(event) for event in events])
    with History.open(url) as history:
        history.add_all(events)
        for number in range(15):
            event = made.event(500 + number)
            text = made.term(depth=0)
            expression = parse_expression(text)

            assert history.matches(text, event) == judge.matches(expression, Known.of(event)), text
