"""Filters that no machine can run, and the reason why.

A label that is aborted to the left of a `;` changes which earlier events count for the right side.
A machine has forgotten these events, so that such a correlation runs from remembered events. So
does a correlation that asks how events relate (`ensue.lang.derived.relating`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.derived.parts import changed_labels, labels_in, statements_of
from ensue.lang.derived.relating import relating_clauses
from ensue.lang.syntax import (
    Both,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PushNew,
    Then,
)


def left_label_aborted(correlation: FilterCorrelation) -> str | None:
    """A label to the left of a `;` that some statement changes, if there is one."""
    changed = changed_labels(correlation)
    found = (label for branch in correlation.branches for label in _left_of_then(branch))
    return next((label for label in found if label in changed), None)


def needs_memory(correlation: FilterCorrelation) -> str | None:
    """Why a correlation has to remember its events; None if a machine can run it."""
    relating = relating_clauses(correlation)
    if relating:
        ask = "ask" if len(relating) > 1 else "asks"
        return f"{_listed(relating)} {ask} how events relate, and not only which have come"
    inner = _set_inside(correlation)
    if inner is not None:
        return f"`{inner}` is set inside of nested data"
    label = left_label_aborted(correlation)
    if label is not None:
        return f"label `{label}` is aborted to the left of a `;`"
    if correlation.clauses.within and correlation.clauses.bind == "first":
        return "`bind first` within a window asks for the first event that is still inside"
    return None


def _set_inside(correlation: FilterCorrelation) -> str | None:
    """An attribute inside of nested data that some `push new` sets, if there is one."""
    names = (
        each.name
        for statement in statements_of(correlation)
        if isinstance(statement, PushNew)
        for each in statement.assignments
    )
    return next((name for name in names if "." in name), None)


def _listed(words: list[str]) -> str:
    *first, last = (f"`{each}`" for each in words)
    return f"{', '.join(first)} and {last}" if first else last


def _left_of_then(x: Filter) -> Iterator[str]:
    """The labels at any depth in a part of a `;` that is not its last part."""
    match x:
        case Labelled(_, body):
            yield from _left_of_then(body)
        case Both(parts) | Either(parts):
            for part in parts:
                yield from _left_of_then(part)
        case Then(parts):
            yield from (each.label for each in labels_in(parts[:-1]))
            yield from _left_of_then(parts[-1])
