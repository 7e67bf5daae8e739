"""Which pushes of a filter can happen at all, as far as its words tell.

In comes a case; out comes whether its label expression is true at any trigger, whatever is active
and whatever has been aborted. Of the branches only their labels are looked at, so that a case which
may run by its labels may still never do so: the analyses (`ensue.machine.analyses`) tell that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations

from ensue.lang.label_logic import label_value
from ensue.lang.syntax import (
    Both,
    Case,
    Change,
    Either,
    Filter,
    FilterCorrelation,
    LabelAnd,
    LabelExpression,
    Labelled,
    LabelName,
    LabelNot,
    LabelOr,
    PortRef,
    Then,
    Times,
)

MOST_LABELS = 8
"""A case with more labels than this counts as one that may run."""


def may_run(case: Case, correlation: FilterCorrelation) -> bool:
    """Whether the label expression of a case can be true when a branch triggers."""
    names = frozenset(_names(case.condition))
    if len(names) > MOST_LABELS:
        return True
    changed = names & _changed(correlation)
    return any(
        label_value(case.condition, active, aborted.__contains__)
        for branch in correlation.branches
        for active in _subsets(names & frozenset(_labels(branch)))
        # An earlier case may have aborted what was active at the trigger.
        for aborted in _subsets(changed)
    )


def ports_in(parts: Iterable[Filter]) -> Iterator[str]:
    """The ports that have a place in a filter."""
    return (each.name for each in _all_in(parts) if isinstance(each, PortRef))


def _labels(x: Filter) -> Iterator[str]:
    return (each.label for each in _all_in((x,)) if isinstance(each, Labelled))


def _all_in(parts: Iterable[Filter]) -> Iterator[Filter]:
    """A filter and all inside of it, however deep that is."""
    left = list(parts)
    while left:
        part = left.pop()
        yield part
        match part:
            case Labelled(_, body) | Times(body, _):
                left.append(body)
            case Both(inside) | Either(inside) | Then(inside):
                left += inside


def _names(x: LabelExpression) -> Iterator[str]:
    match x:
        case LabelName(name):
            yield name
        case LabelNot(body):
            yield from _names(body)
        case LabelAnd(parts) | LabelOr(parts):
            for part in parts:
                yield from _names(part)


def _changed(correlation: FilterCorrelation) -> frozenset[str]:
    statements = chain(correlation.initially, *(case.statements for case in correlation.cases))
    changes = (each for each in statements if isinstance(each, Change))
    return frozenset(label.name for change in changes for label in change.labels)


def _subsets(names: frozenset[str]) -> Iterator[frozenset[str]]:
    ordered = sorted(names)
    for count in range(len(ordered) + 1):
        for chosen in combinations(ordered, count):
            yield frozenset(chosen)
