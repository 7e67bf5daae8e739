"""Which events can come, as far as ports and predicates can tell."""

from __future__ import annotations

import pytest

from ensue.events.types import ValueType
from ensue.lang.expressions.builtins.like import matches
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.events.alphabet import Alphabet, alphabets
from ensue.machine.analyses.events.mentions import Mentions
from ensue.machine.analyses.events.values import texts_for, values_of
from tests.machine.analyses import rules


def alphabet(ports: str, text: str = "a") -> Alphabet:
    library = rules.library(text, ports=ports)
    (only,) = alphabets([Behaviour(library.correlations[0])], library.checked.types)
    return only


def port_sets(ports: str) -> list[str]:
    """The sets of ports that an event can match, each as its names in order."""
    symbols = alphabet(ports).symbols
    return sorted("".join(sorted(each.ports[0])) for each in symbols)


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ("A a, B b", ["a", "b"]),
        ("A a, Base b", ["ab", "b"]),
        ("A a, A b", ["ab"]),
        ('A a from "x", A b from "y"', ["a", "b"]),
        ('A a from "x", A b', ["ab", "b"]),
        ("A a where V > 3, A b where V < 5", ["a", "ab", "b"]),
        ("A a where V > 3, A b where V < 4", ["a", "b"]),
        ("A a where V > 3, A b where V > 5", ["a", "ab"]),
        ("A a where V = 1, A b where V IN (1, 2)", ["ab", "b"]),
        ("A a where S = 'x', A b where S LIKE 'x%'", ["ab", "b"]),
        ("A a where S LIKE 'x%', A b where S LIKE '%y'", ["a", "ab", "b"]),
        ("A a where S LIKE 'x%', A b where S LIKE 'y%'", ["a", "b"]),
        ("A a where EXISTS V, A b where NOT EXISTS V", ["a", "b"]),
        ("A a where V > 3, A b where NOT (V > 3)", ["a", "b"]),
        ("A a where source = 's', A b where source != 's'", ["a", "b"]),
        ("Base a where type = 'A', B b", ["a", "b"]),
        ("A a where V > 3 AND S = 'x', A b where V > 3", ["ab", "b"]),
    ],
)
def test_ports_exclude_and_imply_each_other(ports: str, expected: list[str]) -> None:
    assert port_sets(ports) == expected
    assert alphabet(ports).is_exact


@pytest.mark.parametrize(
    "where",
    [
        "V + 1 > 3",
        "LENGTH(S) > 2",
        "V > K",
        "time > '2024-01-01T00:00:00Z'",
        "S = 3",
        "S = 3 AND S NOT IN ('3', '03')",
    ],
)
def test_what_is_more_than_names_and_constants_is_not_taken_for_told(where: str) -> None:
    found = alphabet(f"A a where {where}, A b")

    assert not found.is_exact
    assert {each.ports[0] for each in found.possible} >= {frozenset("ab"), frozenset("b")}


def test_every_symbol_that_is_certain_has_an_event() -> None:
    assert all(
        each.event for each in alphabet("A a where V + 1 > 3, A b where S LIKE '_x%'").symbols
    )


@pytest.mark.parametrize(
    "patterns", [["a%", "%b"], ["_", "__%"], ["a_c", "abc"], ["\\%", "%"], ["%ab%", "%ba%"]]
)
def test_texts_show_all_that_patterns_can_agree_on(patterns: list[str]) -> None:
    texts, is_all = texts_for(patterns)
    shown = {tuple(matches(text, pattern) for pattern in patterns) for text in texts}

    short = [""] + [x + y + z for x in "abc%" for y in ("", *"abc%") for z in ("", *"abc%")]
    assert is_all
    assert shown >= {tuple(matches(text, pattern) for pattern in patterns) for text in short}


def test_numbers_lie_on_between_and_around_constants() -> None:
    whole, exact = values_of(ValueType("short"), Mentions([3, 5]))
    assert (whole, exact) == ([2, 3, 4, 5, 6], True)

    reals, exact = values_of(ValueType("double"), Mentions([3, 3.5]))
    assert (reals, exact) == ([2.0, 3.0, 3.25, 3.5, 4.5], True)


def test_numbers_stay_in_the_range_of_their_type() -> None:
    assert values_of(ValueType("octet"), Mentions([0, 255]))[0] == [0, 1, 255]
