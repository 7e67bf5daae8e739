"""Ports that nobody can tell apart: many of them are compared quickly, and never wrongly."""

from __future__ import annotations

from itertools import product

import pytest

import ensue
from ensue.library import Library
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.comparison import compare
from ensue.machine.analyses.events.alphabet import alphabets
from ensue.machine.analyses.search.exploration import Exploration
from tests.machine.analyses import rules

FORTY = [f"p{n}" for n in range(40)]


def many(first: str, second: str, count: int = 41) -> Library:
    """Two rules over ports `p0`, `p1`, ..., each of a type of its own."""
    types = "eventtype Out {};" + "".join(f"eventtype T{n} : Out {{}};" for n in range(count))
    ports = ", ".join(f"T{n} p{n}" for n in range(count))
    return ensue.parse(types + rules.rule("One", first, ports) + rules.rule("Two", second, ports))


ALL = " + ".join(FORTY)
ACCUMULATED = f"accumulate {{ {', '.join(FORTY)} }}"
VARIANTS = [
    (ALL, " + ".join(reversed(FORTY)), "equivalent", []),
    (ALL, f"{ALL} | ({ALL} + p40)", "equivalent", []),
    (ALL, " + ".join(FORTY[:-1]), "different", [40, 39]),
    (ALL, f"{ALL} + p40", "different", [40, 41]),
    (ALL, f"ecl repeat {{ notify {{ {ACCUMULATED} }} }}", "equivalent", []),
    (ALL, f"ecl notify {{ {ACCUMULATED} }}", "contains", [80]),
    (f"({ALL}) ; p40", f"{ALL} + p40", "different", [42, 41]),
]


@pytest.mark.parametrize(("first", "second", "relation", "lengths"), VARIANTS)
def test_forty_accumulated_ports_are_compared_with_their_variants(
    first: str, second: str, relation: str, lengths: list[int]
) -> None:
    library = many(first, second)

    found = rules.compare_in(library)

    assert found.relation == relation
    assert [len(each) for each in found.witnesses] == lengths
    rules.verify(library, found)


PAIRS = [
    ("p0 + p1 + p2", "p0 ; p1 ; p2", "different", [3, 4]),
    ("p0 + p1 + p2 => within 3 s", "p0 + p1 + p2 => within 2 s", "different", [3, 4]),
    ("(p0 + p1) ; p2", "p0 + p1 + p2", "different", [4, 3]),
    ("l1:(p0 + p1) | p2 => { case l1: push new Out {}; }", "p0 + p1", "different", [4, 3]),
    ("p0 | p1 | p2 => { case true: push p1; }", "p0 | (p1 ; p2)", "different", [1, 1]),
    ("p0 | p1 => { case true: push p0; }", "p0 | p1", "contained", [1]),
    (
        "l1:p0 + p1 || p2 => { case true: push new Out {}; toggle(l1); }",
        "p0 + p1 || p2",
        "different",
        [2, 3],
    ),
    (
        "ecl repeat { notify { accumulate { p0, p1, p2 } } }",
        "ecl repeat { notify { p2 } }",
        "different",
        [3, 1],
    ),
    (
        "ecl modes { in (p0) do { notify { p1 } } in (p1) do { notify { p0 } } }",
        "p0 + p1",
        "contained",
        [2],
    ),
    ("p0{2} + p1{2} + p2", "p0 + p1 + p2{2}", "different", [5, 4]),
]


@pytest.mark.parametrize(("first", "second", "relation", "lengths"), PAIRS)
def test_what_is_left_out_as_alike_changes_no_answer(
    first: str, second: str, relation: str, lengths: list[int]
) -> None:
    library = many(first, second, 3)
    found = rules.compare_in(library)

    assert found.relation == relation
    assert [len(each) for each in found.witnesses] == lengths
    rules.verify(library, found)


def test_ports_whose_own_events_are_sent_on_are_told_apart() -> None:
    library = many("p0 | p1 => { case true: push p0; }", "p0", 2)

    assert rules.compare_in(library).relation == "equivalent"


@pytest.mark.parametrize("text", ["p0 + p1 + p2 + p3", "ecl accumulate { p0, p1, p2, p3 }"])
def test_situations_are_counted_by_how_many_ports_have_come(text: str) -> None:
    library = many(text, text, 4)
    behaviour = Behaviour(library.correlations[0])
    (alphabet,) = alphabets([behaviour], library.checked.types)

    edges = list(Exploration([behaviour], alphabet.symbols, 100_000).edges())

    assert len({edge.source for edge in edges}) <= 6


def test_a_difference_in_one_predicate_is_found_among_ports_alike() -> None:
    ports = ", ".join(f"A p{n} where V = {n}" for n in range(5))
    narrow = ports.replace("V = 4", "V = 4 AND K = 1")
    library = ensue.parse(
        rules.TYPES
        + rules.rule("One", " + ".join(FORTY[:5]), ports)
        + rules.rule("Two", " + ".join(FORTY[:5]), narrow)
    )
    one, two = library.correlations

    found = compare(one, two, library.checked.types)

    assert found.relation == "different"
    rules.verify(library, found)


def test_every_sequence_of_three_types_is_judged_as_the_engine_judges_it() -> None:
    library = many("p0 + p1 + p2", "(p0 + p1) ; p2", 3)
    found = rules.compare_in(library)
    shortest: list[int] = []
    for length in range(1, 4):
        for types in product(range(3), repeat=length):
            outs = []
            for each in library.correlations:
                run = rules.alone(library, each)
                made: list[ensue.Event] = []
                for second, number in enumerate(types):
                    event = ensue.Event.of(f"T{number}", time=second, id=str(second))
                    made = run.push(event)
                outs.append(bool(made))
            if outs == [True, False]:
                shortest.append(length)

    assert found.only_first is not None
    assert len(found.only_first) == min(shortest)
