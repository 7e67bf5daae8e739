"""What thousands of cases and findings in one text cost, and that it stays right."""

from __future__ import annotations

import time
from itertools import chain, combinations, product

import pytest

import ensue
from ensue.errors import LibraryError
from ensue.lang.checking.pushing import cases_that_may_run
from ensue.lang.derived.label_logic import label_value
from ensue.lang.diagnostics import did_you_mean
from ensue.lang.syntax import FilterCorrelation

TYPES = "eventtype A { attribute long v; } eventtype Out {} "
BRANCHES = ["l:a", "l:a || m:a", "l:(a + m:a) || n:a", "l:a | m:a || n:a || a"]
CONDITIONS = [
    "l",
    "!l",
    "l & m",
    "l & n",
    "l & !m & n",
    "!l & !m & !n",
    "m & n",
    "(l | m) & n",
    "!n",
    "l & !l",
    "true",
]


def test_findings_of_one_line_share_its_text() -> None:
    """The line of a generated library may be very long, and hold thousands of them."""
    wanted = ", ".join(f"<unknown = {n}>" for n in range(50))
    library = ensue.parse(f"{TYPES} Out ecl X (A a) {{ notify {{ select {{ {wanted} }} }} }}")

    assert len(library.warnings) >= 50
    assert len({id(each.text) for each in library.warnings}) == 1


def test_a_case_may_run_if_some_branch_can_make_its_labels_true() -> None:
    judged = 0
    for branches, change, condition in product(BRANCHES, ("", "abort(l);"), CONDITIONS):
        text = f"{change} case l | !l: {change} case {condition}: push new Out {{}};"
        correlation = filter_of(branches, text)
        if correlation is not None:
            judged += 1
            found = correlation.cases[1] in cases_that_may_run(correlation)
            assert found == by_hand(correlation, bool(change)), (branches, change, condition)

    assert judged > 40


def filter_of(branches: str, text: str) -> FilterCorrelation | None:
    """The filter, or None where a case names a label that it does not have."""
    rule = f"Out correlation X (A a) {branches} {{ {text} }}"
    try:
        (correlation,) = ensue.parse(TYPES + rule).correlations
    except ensue.LibraryError:
        return None
    assert isinstance(correlation, FilterCorrelation)
    return correlation


def by_hand(correlation: FilterCorrelation, is_changed: bool) -> bool:
    """Try every set of active labels of a branch, and every set that may be aborted."""
    condition = correlation.cases[1].condition
    sets = [
        frozenset(label for label in "lmn" if f"label='{label}'" in repr(b))
        for b in correlation.branches
    ]
    actives = chain(*(subsets(each) for each in sets))
    aborted = [frozenset("l"), frozenset()] if is_changed else [frozenset()]
    return any(
        label_value(condition, active, out.__contains__)
        for active, out in product(actives, aborted)
    )


def subsets(names: frozenset[str]) -> list[frozenset[str]]:
    return [frozenset(each) for n in range(len(names) + 1) for each in combinations(names, n)]


def test_thousands_of_mistakes_on_one_line_are_found_in_the_time_of_their_number() -> None:
    text = "eventtype A {}; A correlation R (A a) "
    text += " | ".join(f"zz{n}" for n in range(8_000)) + " { case true: push a; }"
    began = time.process_time()
    with pytest.raises(LibraryError) as refused:
        ensue.parse(text)
    assert len(refused.value.diagnostics) >= 8_000
    assert time.process_time() - began < 10


def test_a_hint_is_found_soon_among_thousands_of_names() -> None:
    names = [f"Tq{n}" for n in range(8_000)]
    began = time.process_time()
    assert all(did_you_mean(f"Tq{n}x", names) for n in range(100))
    assert did_you_mean("x" * 100_000, names).startswith("known:")
    assert time.process_time() - began < 10
