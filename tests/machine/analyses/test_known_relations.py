"""Pairs of rules whose relation is known; every witness is run by the reference engine."""

from __future__ import annotations

import pytest

import ensue
from ensue.machine.analyses.comparison import compare
from ensue.machine.analyses.normal_form import normal_form

from . import rules

ONCE = "case l1: push new Out {}; }"

KNOWN = [
    # + and | do not care about order; ; does
    ("a + b", "b + a", "equivalent"),
    ("a | b", "b | a", "equivalent"),
    ("a ; b", "b ; a", "different"),
    ("(a ; b) | (b ; a)", "a + b", "equivalent"),
    ("a", "a | b", "contained"),
    ("a | b", "a", "contains"),
    ("a ; b", "a + b", "different"),  # `b a b` triggers at its second letter, and forgets
    ("a + b", "a", "different"),
    ("a", "a", "equivalent"),
    ("a", "b", "different"),
    # chains and brackets
    ("(a ; b) ; c", "a ; (b ; c)", "equivalent"),
    ("(a + b) + c", "a + (b + c)", "equivalent"),
    ("a{3}", "a ; a ; a", "equivalent"),
    ("a{2}", "a{3}", "different"),
    ("a{4}", "a{2}", "contained"),
    ("(a ; b){2}", "a ; b ; a ; b", "equivalent"),
    ("a + a", "a", "equivalent"),
    ("a | (a + b)", "a", "equivalent"),  # absorption
    ("a + (a | b)", "a", "equivalent"),
    ("a + (b | c)", "(a + b) | (a + c)", "equivalent"),  # distribution
    ("a ; (b | c)", "(a ; b) | (a ; c)", "equivalent"),
    ("(a | b) ; c", "(a ; c) | (b ; c)", "equivalent"),
    # branches remember apart from each other
    ("a || b", "a | b", "equivalent"),
    ("(a + b) || (a + c)", "(a + b) | (a + c)", "different"),
    ("a ; b || a ; b", "a ; b", "equivalent"),
    # labels and cases
    (
        f"l1:(a ; b) | l2:c => {{ {ONCE}",
        "ecl repeat { notify { do { sequential { a, b } } unless { c } } }",
        "equivalent",
    ),
    (f"l1:a | l2:b => {{ {ONCE}", "a", "equivalent"),
    ("l1:a | l2:b => { case l1 & l2: push new Out {}; }", "ecl false", "equivalent"),
    ("l1:a | l2:b => { case l1 | !l1: push new Out {}; }", "a | b", "equivalent"),
    ("l1:a + l2:b => { case l1 & l2: push new Out {}; }", "a + b", "equivalent"),
    ("a | b => { case true: push a; }", "a", "equivalent"),
    # labels that are aborted to the left of a `;`
    ("l1:a ; b => { abort(l1); case true: push new Out {}; }", "b", "equivalent"),
    ("l1:a ; b => { case true: push new Out {}; abort(l1); revive(l1); }", "a ; b", "equivalent"),
    ("l1:a ; b => { case true: push new Out {}; toggle(l1); }", "a ; b", "contains"),
    (
        "l1:a ; b || l2:c => { case l2: abort(l1); case !l2: push new Out {}; }",
        "b | c",
        "contained",
    ),
    (
        "l1:a ; b || l2:c => { case l2: abort(l1); case l2 | !l2: push new Out {}; }",
        "b || c",
        "contained",
    ),
    (
        "l1:a ; b => within 5 s { abort(l1); case true: push new Out {}; }",
        "b => within 1 s",
        "equivalent",
    ),
    # abort, revive, toggle
    ("l1:a | b => { abort(l1); case true: push new Out {}; }", "b", "equivalent"),
    ("l1:a + b => { abort(l1); case true: push new Out {}; }", "b", "equivalent"),
    ("l1:a || l2:b => { case l2: toggle(l1); case l1: push new Out {}; }", "a", "contained"),
    (
        "l1:a || l2:b => { case l2: abort(l1); revive(l1); case l1: push new Out {}; }",
        "a",
        "equivalent",
    ),
    ("l1:a => { case l1: push new Out {}; abort(l1); }", "ecl notify { a }", "equivalent"),
    # ECL
    ("ecl repeat { notify { a } }", "a", "equivalent"),
    ("ecl repeat { notify { accumulate { a, b } } }", "a + b", "equivalent"),
    ("ecl repeat { notify { sequential { a, b } } }", "a ; b", "equivalent"),
    ("ecl repeat { notify { select { a, b } } }", "a | b", "equivalent"),
    ("ecl notify { a }", "a", "contained"),
    (
        "ecl repeat(2) { notify { a } }",
        "ecl sequential { notify { a }, notify { a } }",
        "equivalent",
    ),
    ("ecl repeat(3) { notify { a } }", "ecl repeat(2) { notify { a } }", "contains"),
    ("ecl persist { notify { a } }", "ecl notify { a }", "equivalent"),
    ("ecl loop { notify { a } }", "ecl repeat { notify { a } }", "equivalent"),
    ("ecl repeat { notify { fail { fail { a } } } }", "a", "equivalent"),
    ("ecl repeat { notify { do { a } unless { b } } }", "a", "equivalent"),
    ("ecl notify { do { a } unless { b } }", "ecl notify { a }", "contained"),
    ("ecl repeat { notify { true } }", "a | b | c | d", "equivalent"),
    ("ecl parallel { repeat { notify { a } }, repeat { notify { b } } }", "a || b", "equivalent"),
    ("ecl false", "a", "contained"),
    # windows
    ("a ; b => within 10 s", "a ; b => within 10 s", "equivalent"),
    ("a + b => within 10 s", "(a ; b) | (b ; a) => within 10 s", "equivalent"),
    ("a + b => within 5 s", "a + b => within 10 s", "different"),
    ("a => within 5 s", "a => within 10 s", "equivalent"),
    ("a ; b => within 10 s", "a ; b", "contained"),
    ("a{2} => within 1 s", "ecl repeat { notify { a } }", "contained"),
    # timeouts
    (
        "ecl repeat { notify { timeout(10 s) } }",
        "ecl repeat { notify { timeout(5 s) } }",
        "contained",
    ),
    (
        "ecl sequential { a, notify { do { timeout(10 s) } unless { b } } }",
        "ecl sequential { a, notify { timeout(10 s) } }",
        "contained",
    ),
    (
        "ecl repeat { notify { do { sequential { a, b } } unless { timeout(3 s) } } }",
        "ecl repeat { notify { sequential { a, b } } }",
        "contained",
    ),
    (
        "ecl notify { timeout(10 s) }",
        "ecl notify { sequential { timeout(5 s), timeout(5 s) } }",
        "equivalent",
    ),
    ("ecl notify { timeout(10 s) }", "ecl notify { timeout(12 s) }", "different"),
]


@pytest.mark.parametrize(("first", "second", "relation"), KNOWN)
def test_the_relation_is_found_and_its_witnesses_hold(
    first: str, second: str, relation: str
) -> None:
    library = rules.library(first, second)
    found = rules.compare_in(library)

    assert (found.relation, found.reason) == (relation, None)
    rules.verify(library, found)


def test_forty_ports_are_compared_although_they_have_a_million_million_situations() -> None:
    numbers = range(40)
    types = "".join(f"eventtype T{n} {{}}; " for n in numbers)
    ports = ", ".join(f"T{n} p{n}" for n in numbers)
    names = [f"p{n}" for n in numbers]
    library = ensue.parse(
        f"eventtype Out {{}}; {types}"
        f"Out correlation One ({ports}) {' + '.join(names)} {{ case true: push new Out {{}}; }}"
        f"Out ecl Two ({ports})"
        f" {{ repeat {{ notify {{ accumulate {{ {', '.join(reversed(names))} }} }} }} }}"
    )

    assert rules.compare_in(library).relation == "equivalent"


@pytest.mark.parametrize(("first", "second"), [(f, s) for f, s, r in KNOWN if r != "equivalent"])
def test_rules_that_differ_have_different_normal_forms(first: str, second: str) -> None:
    one, two = rules.library(first, second).correlations

    assert normal_form(one) != normal_form(two)


def test_labels_that_change_together_are_followed_however_many_they_are() -> None:
    labelled = " ; ".join(f"l{n}:a" for n in range(20))
    toggles = "".join(f"toggle(l{n}); " for n in range(20))
    library = rules.library(f"{labelled} ; b => {{ case true: push new Out {{}}; {toggles} }}", "b")
    found = rules.compare_in(library)

    assert found.relation == "contained"
    rules.verify(library, found)


def test_more_changes_of_labels_than_can_be_followed_are_undecided_and_counted() -> None:
    numbers = range(8)
    ports = "A a, B b, " + ", ".join(f"C c{n} where V = {n}" for n in numbers)
    labelled = " ; ".join(f"l{n}:a" for n in numbers)
    switches = " || ".join(f"k{n}:c{n}" for n in numbers)
    cases = "".join(f"case k{n}: toggle(l{n}); " for n in numbers)
    text = f"{labelled} ; b || {switches} => {{ {cases} case true: push new Out {{}}; }}"
    found = rules.compared(text, "b", ports)

    assert found.relation == "undecided"
    assert found.reason == (
        "`One` changes too much: 8 labels of a branch change, which can go on in more than 2,187"
        " ways"
    )


def test_a_budget_that_ends_says_how_far_the_search_has_come() -> None:
    library = rules.library("a + b + c + d => within 10 s", "d ; c ; b ; a => within 9 s")
    one, two = library.correlations

    found = compare(one, two, library.checked.types, work=300)

    assert found.reason is not None
    assert "what is not shown here would take more than 1 moment" in found.reason


def test_a_search_past_its_budget_is_undecided() -> None:
    library = rules.library("a + b + c + d => within 10 s", "d ; c ; b ; a => within 9 s")
    one, two = library.correlations

    assert compare(one, two, library.checked.types, work=50).relation == "undecided"


def test_predicates_that_cannot_be_told_apart_leave_what_depends_on_them_undecided() -> None:
    ports = "A a where V + 1 > 3, A b where V * V = 2"

    assert rules.compared("a + b", "b + a + b", ports).relation == "equivalent"
    assert rules.compared("a + b", "ecl false", ports).relation == "undecided"


def test_predicates_that_ask_for_the_time_never_make_a_wrong_witness() -> None:
    ports = "A a where time > '2030-01-01T00:00:00Z', A b"

    assert rules.compared("a", "ecl false", ports).relation == "undecided"


def test_different_thresholds_on_a_port_of_one_name_are_told_and_noted() -> None:
    library = ensue.parse(
        rules.TYPES
        + rules.rule("One", "a", "A a where V > 3")
        + rules.rule("Two", "a", "A a where V > 5")
    )
    found = rules.compare_in(library)

    assert found.relation == "contains"
    assert any("`a` is not declared alike" in note for note in found.notes)
    rules.verify(library, found)


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("a ; b => by K", "a ; b", "different"),
        ("a => by K", "a", "contained"),
        ("a => by K", "a => by K, S", "contains"),
        ("a => by K", "a => by S", "different"),
        ("a ; b => by K", "ecl repeat { notify { sequential { a, b } } }", "different"),
        ("a + b => within 5 s by K", "a + b => within 5 s", "different"),
    ],
)
def test_an_event_without_a_key_tells_rules_apart_that_are_not_by_the_same_one(
    first: str, second: str, relation: str
) -> None:
    library = rules.library(first, second)
    found = rules.compare_in(library)

    assert found.relation == relation
    assert any(note.startswith("their keys differ") for note in found.notes)
    for witness in found.witnesses:
        seen = [rules.outputs_at(library, each, witness) for each in library.correlations]
        told = [each.puts_out for each in witness.moments]
        assert [(bool(one), bool(two)) for one, two in zip(*seen, strict=True)] == told


def test_a_key_that_names_one_attribute_for_each_port_is_that_attribute() -> None:
    found = rules.compared("a ; b => by K", "a ; b => by a.K = b.K", ports="A a, B b")

    assert (found.relation, found.notes) == ("equivalent", ())


@pytest.mark.parametrize("by", ["S", "source"])
def test_keys_that_are_asked_about_or_never_missing_are_left_undecided(by: str) -> None:
    library = ensue.parse(
        rules.TYPES
        + rules.rule("One", f"a => by {by}", "A a where S = 'x'")
        + rules.rule("Two", "a", "A a where S = 'x'")
    )

    assert rules.compare_in(library).relation == "undecided"


@pytest.mark.parametrize(("first", "second", "relation"), KNOWN)
def test_the_relation_turns_around_with_its_sides(first: str, second: str, relation: str) -> None:
    library = rules.library(first, second)
    one, two = library.correlations
    turned = {"contained": "contains", "contains": "contained"}

    assert compare(two, one, library.checked.types).relation == turned.get(relation, relation)


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        ("push new Out {}", "push new Out {} with { priority = 1 }", "different"),
        (
            "push new Out {} with { priority = 1 }",
            "push new Out {} with { priority = 2 }",
            "different",
        ),
        (
            "push new Out {} with { x = 1, y = 2 }",
            "push new Out {} with { y = 2, x = 1 }",
            "equivalent",
        ),
        ("push a with { priority = 1 }", "push a with { priority = 1 }", "equivalent"),
        ("push a with { priority = 1 }", "push a", "different"),
    ],
)
def test_rules_that_set_other_extensions_are_different(one: str, other: str, relation: str) -> None:
    """They put out at the same moments, so that there is no witness, and the reason says so."""
    cases = [
        f"Out correlation R{n} (Out a) a {{ case true: {each}; }}"
        for n, each in enumerate((one, other))
    ]
    library = ensue.parse("eventtype Out {};" + "\n".join(cases))
    first, second = library.correlations

    found = compare(first, second, library.checked.types)

    assert found.relation == relation
    assert found.witnesses == ()
    assert (found.reason is not None) == (relation == "different")
