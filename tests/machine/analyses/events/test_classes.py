"""Values that predicates take for the same: one stands for all, and few are asked."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ensue.events.event import Event
from ensue.events.types import ValueType
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import EventScope, Outcome, evaluate
from ensue.lang.syntax import EventPort
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.events.alphabet import alphabets
from ensue.machine.analyses.events.classes import Classes, facts_about
from ensue.machine.analyses.events.mentions import Mentions
from ensue.machine.analyses.events.values import values_of
from tests.machine.analyses import rules

MANY = ", ".join(str(3 * each) for each in range(2_500))


def predicate(text: str) -> Expression:
    port = rules.library("a", ports=f"A a where {text}").correlations[0].ports[0]
    assert isinstance(port, EventPort)
    assert port.where is not None
    return port.where


def outcome_of(name: str) -> Any:
    def outcome(fact: Expression, value: Any) -> Outcome:
        return evaluate(fact, EventScope(Event("e", "s", "A", 0, {name: value})))

    return outcome


def never(_: Expression, value: Any) -> Outcome:
    raise AssertionError(f"{value} was evaluated")


@pytest.mark.parametrize(
    ("text", "values", "kept"),
    [
        (f"V IN ({MANY})", list(range(-1, 7_500)), [-1, 0]),
        (f"V NOT IN ({MANY})", list(range(-1, 7_500)), [-1, 0]),
        (" OR ".join(f"V = {3 * each}" for each in range(2_500)), list(range(99)), [0, 1]),
        (" AND ".join(f"V != {each}" for each in range(2_500)), [1, 2, 9_999], [1, 9_999]),
        ("V > 3 AND V < 9 OR V = 20", list(range(30)), [0, 4]),
        ("3 < V XOR V >= 9", list(range(30)), [0, 4]),
        ("V > 2.5", [2, 3, 4], [2, 3]),
        ("S = 'x' OR S IN ('y', 'z')", ["a", "x", "y", "z"], ["a", "x"]),
    ],
)
def test_comparisons_are_told_without_evaluating_them(
    text: str, values: list[Any], kept: list[Any]
) -> None:
    """One value is kept of each kind, however many constants there are."""
    assert Classes(values, never).one_of_each([predicate(text)]) == kept


def test_every_value_is_stood_for_by_one_that_is_kept() -> None:
    """On random predicates: what a kept value shows is all that any value can show."""
    for seed in range(150):
        random = Random(seed)
        name = random.choice("VS")
        texts = [random_predicate(random, name) for _ in range(random.randint(1, 3))]
        facts = [predicate(each) for each in texts]
        values = list(range(-1, 9)) if name == "V" else ["", "a", "b", "1", "true", "c"]
        outcome = outcome_of(name)
        classes = Classes(values, outcome)
        kept = classes.one_of_each(facts)

        shown = [[outcome(fact, value) for fact in facts] for value in values]
        shown_by_kept = [[outcome(fact, value) for fact in facts] for value in kept]
        assert all(each in shown_by_kept for each in shown), texts
        assert len(kept) == len({repr(each) for each in shown}), texts
        for fact in facts:
            truths = classes.truths(fact, kept)
            assert truths in (None, [outcome(fact, value).value for value in kept]), texts


def random_predicate(random: Random, name: str, depth: int = 2) -> str:
    if depth and random.random() < 0.5:
        sign = random.choice(["AND", "OR", "XOR"])
        parts = [random_predicate(random, name, depth - 1) for _ in range(random.randint(2, 3))]
        return "(" + f" {sign} ".join(parts) + ")"
    if random.random() < 0.15:
        return f"(NOT {random_predicate(random, name, 0)})"
    if name == "S":
        forms = ["S = 'a'", "S != 'b'", "S IN ('a', 'c')", "S LIKE 'a%'", "S = 1", "'c' = S"]
        return random.choice(forms)
    sign = random.choice(["=", "!=", "<", "<=", ">", ">="])
    constant = random.choice(["0", "1", "3", "7", "2.5", "3.0"])
    forms = [f"V {sign} {constant}", f"{constant} {sign} V", "V IN (1, 2, 5)", "V NOT IN (3, 4)"]
    return random.choice(forms)


@pytest.mark.parametrize("name", ["V", "S"])
def test_facts_are_the_largest_parts_about_one_name(name: str) -> None:
    found = facts_about((name,), predicate("(V > 1 OR V < 0) AND (S = 'x' OR NOT (V = 9))"))

    assert len(list(found)) == {"V": 2, "S": 1}[name]


@pytest.mark.parametrize(
    ("ports", "symbols"),
    [
        (f"A a where V IN ({MANY})", 1),
        (f"A a where V IN ({MANY}), A b where V > 100", 3),
        ("A a, " + ", ".join(f"A p{each} where V = {each}" for each in range(300)), 301),
    ],
)
def test_many_constants_make_few_events(
    ports: str, symbols: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An alphabet is exact, and its predicates are asked of a handful of events."""
    asked = []

    def counted(*args: Any) -> bool:
        asked.append(args)
        return False

    library = rules.library("a", ports=ports)
    behaviour = Behaviour(library.correlations[0])
    monkeypatch.setattr("ensue.machine.analyses.events.sampling.holds", counted)

    (alphabet,) = alphabets([behaviour], library.checked.types)

    assert alphabet.is_exact
    assert len(alphabet.symbols) == symbols
    assert not asked


def test_thousands_of_texts_are_told_apart_exactly() -> None:
    """Constants without patterns need no search for texts: they are the texts."""
    ports = "A a where S IN (" + ", ".join(f"'host-{each}'" for each in range(1_000)) + ")"
    library = rules.library("a", ports=ports)

    (alphabet,) = alphabets([Behaviour(library.correlations[0])], library.checked.types)

    assert alphabet.is_exact


def test_the_values_of_texts_are_the_constants_and_another() -> None:
    assert values_of(ValueType("string"), Mentions(["x", "ab"])) == (["y", "x", "ab"], True)
