"""Analyses end by their deadline, and say so."""

from __future__ import annotations

import time

import pytest

from ensue.lang.source import Source
from ensue.machine.analyses.behaviour import Behaviour
from ensue.machine.analyses.comparison import compare
from ensue.machine.analyses.deadline import OutOfTimeError, UndecidableError, deadline, poll
from ensue.machine.analyses.dependencies import dependencies
from ensue.machine.analyses.properties import properties
from ensue.machine.analyses.warnings import analysis_warnings

from . import rules

SLOW = "(a + b + c + d){30} | (a ; b ; c){20} => within 3 s"


def test_a_deadline_that_has_passed_is_said() -> None:
    library = rules.library("a ; b")
    correlation, types = library.correlations[0], library.checked.types

    found = properties(correlation, types, seconds=0)

    assert found.can_put_out.holds is None
    assert found.can_put_out.reason == "the analysis did not end within 0 s"


def test_a_comparison_past_its_deadline_is_undecided() -> None:
    library = rules.library("a ; b", "b ; a")
    one, two = (library.correlations[each] for each in (0, 1))

    found = compare(one, two, library.checked.types, seconds=0)

    assert (found.relation, found.reason) == ("undecided", "the analysis did not end within 0 s")


def test_dependencies_past_their_deadline_are_unknown() -> None:
    library = rules.library("a ; b")

    found = dependencies(library.correlations[0], library.checked.types, seconds=0)

    assert all(each.decides_when is None and "within 0 s" in str(each.reason) for each in found)


def test_an_inner_deadline_is_never_later_than_the_outer_one() -> None:
    with deadline(0), deadline(60), pytest.raises(OutOfTimeError, match="within 0 s"):
        poll()


def test_without_a_deadline_nothing_is_raised() -> None:
    with deadline(None):
        poll()
    poll()


def test_a_large_search_ends_by_its_deadline() -> None:
    library = rules.library(SLOW)
    began = time.monotonic()

    found = properties(library.correlations[0], library.checked.types, 10**12, seconds=0.2)

    assert "within 0.2 s" in str(found.stuck.reason)
    assert time.monotonic() - began < 20


def test_check_says_which_rules_were_given_up() -> None:
    library = rules.library("a ; b", "c ; d")
    source = Source((("rules.cor", "x" * 10_000),))

    found = analysis_warnings(library.checked, source, seconds=0)

    assert [each.code for each in found] == ["analysis-deadline"]
    assert "and of 1 more did not end: 0 s were allowed" in found[0].message


def test_a_large_rule_leaves_time_for_the_others() -> None:
    """The large one, which comes first, is given up; the small one after it is looked at."""
    library = rules.library(SLOW, "a => { case true: abort(l); }".replace("a =>", "l:a =>"))
    source = Source((("rules.cor", "x" * 10_000),))

    found = analysis_warnings(library.checked, source, seconds=4, work=10**12)

    assert [each.code for each in found] == ["analysis-deadline", "can-never-fire"]


def test_labels_that_change_in_too_large_a_branch_are_undecided() -> None:
    """300 labels that one case toggles: few ways, but each has a machine of hundreds of states."""
    labels = [f"l{each}" for each in range(300)]
    text = " ; ".join(f"{label}:(a ; b)" for label in labels)
    library = rules.library(
        f"{text} => {{ case true: push new Out {{}}; toggle({', '.join(labels)}); }}"
    )

    with pytest.raises(UndecidableError, match="200,000 states"):
        Behaviour(library.correlations[0])
