"""The ways in which the labels of a filter may yet be changed, up to a later trigger.

In come a correlation and some of its labels; out come *ways*: the labels that will be out then, and
the labels that will be fresh (revived later than now); all others stay alive. A case changes its
labels one after the other and nothing is read in between, so that labels which are changed together
have few ways: six labels that one case toggles have 8, not 3^6. It is left open when a case runs,
so that some ways may never happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ensue.lang.syntax import Change, FilterCorrelation, Statement
from ensue.machine.analyses.deadline import poll

ALIVE, OUT, FRESH = range(3)

Status = tuple[int, ...]
"""For each label `ALIVE`, `OUT` or `FRESH`."""

Steps = tuple[tuple[str, int], ...]
"""The changes of a list of statements, in order: the kind, and the place of the label."""

Way = tuple[frozenset[str], frozenset[str]]
"""The labels that are out, and the labels that are fresh."""


class TooManyWaysError(Exception):
    """Labels may change in more ways than can be followed; the message counts them."""


def label_ways(correlation: FilterCorrelation, labels: Sequence[str], limit: int) -> list[Way]:
    """All ways of these labels, seen from the start and from between any two changes."""
    lists = [_steps(correlation.initially, labels)]
    lists += dict.fromkeys(_steps(case.statements, labels) for case in correlation.cases)
    lists = [lists[0], *(each for each in lists[1:] if each)]
    found = _closed(_beginnings(lists, labels, limit), lists[1:], labels, limit)
    return [
        (
            frozenset(label for label, each in zip(labels, status, strict=True) if each == OUT),
            frozenset(label for label, each in zip(labels, status, strict=True) if each == FRESH),
        )
        for status in found
    ]


def _steps(statements: Iterable[Statement], labels: Sequence[str]) -> Steps:
    return tuple(
        (each.kind, labels.index(label.name))
        for each in statements
        if isinstance(each, Change)
        for label in each.labels
        if label.name in labels
    )


def _beginnings(lists: Sequence[Steps], labels: Sequence[str], limit: int) -> list[Status]:
    """The status of labels at the end of the list of statements that runs, and none after it.

    Seen from every situation, also from the middle of a list: there aborted labels are out, and the
    others are alive.
    """
    first, *others = lists
    start = (ALIVE,) * len(labels)
    found = {start: None}
    aborted = [_run_through(first, start, found)]
    seen = {*aborted}
    while aborted:
        status = aborted.pop()
        for steps in others:
            after = _run_through(steps, status, found)
            if after not in seen:
                seen.add(after)
                aborted.append(after)
        _check(found, labels, limit)
    return list(found)


def _run_through(steps: Steps, status: Status, found: dict[Status, None]) -> Status:
    """Run a list of changes, and add the status at its end as seen from each of its steps."""
    found[status] = None
    for number, step in enumerate(steps):
        poll()
        found[_after(steps[number:], status)] = None
        status = tuple(OUT if each == OUT else ALIVE for each in _after((step,), status))
    found[status] = None
    return status


def _closed(
    starts: Iterable[Status], lists: Sequence[Steps], labels: Sequence[str], limit: int
) -> list[Status]:
    found = dict.fromkeys(starts)
    waiting = list(found)
    while waiting:
        status = waiting.pop()
        for steps in lists:
            poll()
            after = _after(steps, status)
            if after not in found:
                found[after] = None
                waiting.append(after)
        _check(found, labels, limit)
    return list(found)


def _after(steps: Steps, status: Status) -> Status:
    changed = list(status)
    for kind, place in steps:
        is_out = changed[place] == OUT
        if kind == "abort" or (kind == "toggle" and not is_out):
            changed[place] = OUT
        elif is_out:
            changed[place] = FRESH
    return tuple(changed)


def _check(found: dict[Status, None], labels: Sequence[str], limit: int) -> None:
    if len(found) > limit:
        raise TooManyWaysError(
            f"{len(labels)} labels of a branch change, which can go on in more than {limit:,} ways"
        )
