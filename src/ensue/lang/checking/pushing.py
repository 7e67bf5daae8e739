"""The cases of a filter that may run, by their label expressions.

In comes a filter; out come the cases whose label expression is true for some set of active and
aborted labels. Of branches only the labels count, so that a case which may run by its labels may
still never run: that is found by the analyses (`ensue.machine.analyses`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from ensue.lang.derived.label_logic import label_value
from ensue.lang.derived.parts import changed_labels, labels_in
from ensue.lang.syntax import (
    Case,
    FilterCorrelation,
    LabelAnd,
    LabelExpression,
    LabelName,
    LabelNot,
    LabelOr,
)

MOST_LABELS = 8
"""A case with more labels counts as one that may run."""


def cases_that_may_run(correlation: FilterCorrelation) -> list[Case]:
    """The cases whose label expression can be true when a branch triggers."""
    branches_with: dict[str, set[int]] = {}
    for number, branch in enumerate(correlation.branches):
        for each in labels_in((branch,)):
            branches_with.setdefault(each.label, set()).add(number)
    changed = changed_labels(correlation)
    count = len(correlation.branches)
    return [each for each in correlation.cases if _may_run(each, changed, branches_with, count)]


def _may_run(
    case: Case, changed: frozenset[str], branches_with: Mapping[str, set[int]], count: int
) -> bool:
    names = frozenset(_names(case.condition))
    if len(names) > MOST_LABELS:
        return True
    labels_of: dict[int, set[str]] = {}
    for name in names:
        for branch in branches_with.get(name, ()):
            labels_of.setdefault(branch, set()).add(name)
    together = {frozenset(each) for each in labels_of.values()}
    if len(labels_of) < count:
        together.add(frozenset())
    return any(
        label_value(case.condition, active, aborted.__contains__)
        for labels in together
        for active in _subsets(labels)
        # An earlier case may have aborted labels that were active at the trigger.
        for aborted in _subsets(names & changed)
    )


def _names(x: LabelExpression) -> Iterator[str]:
    match x:
        case LabelName(name):
            yield name
        case LabelNot(body):
            yield from _names(body)
        case LabelAnd(parts) | LabelOr(parts):
            for part in parts:
                yield from _names(part)


def _subsets(names: frozenset[str]) -> Iterator[frozenset[str]]:
    ordered = sorted(names)
    for count in range(len(ordered) + 1):
        for chosen in combinations(ordered, count):
            yield frozenset(chosen)
