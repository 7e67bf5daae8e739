"""In which ways the labels of a filter may yet be changed.

In comes a correlation and some of its labels; out come *ways*: which of the labels will be out, and
which will be fresh (revived later than now), when it counts; the others stay alive as they are. A
case changes its labels one after the other with nothing read in between, so labels that are changed
together have few ways between them: six that are toggled by one case have 8, not 3^6. When a case
runs is left open, so there may be ways here that never come to pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ensue.lang.syntax import Change, FilterCorrelation, Statement
from ensue.machine.analyses.deadline import poll

ALIVE, OUT, FRESH = range(3)

Status = tuple[int, ...]
"""For each label, what becomes of it."""

Steps = tuple[tuple[str, int], ...]
"""What a list of statements changes, one label after the other: the kind, and the label's place."""

Way = tuple[frozenset[str], frozenset[str]]
"""The labels that are out, and the labels that are fresh."""


class TooManyWaysError(Exception):
    """More ways in which labels may change than can be followed; the message counts them."""


def label_ways(correlation: FilterCorrelation, labels: Sequence[str], limit: int) -> list[Way]:
    """All ways of these labels, from the beginning on and between any two changes."""
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
    """What becomes of the labels if only the list that is being run is run to its end.

    Seen from every situation that there may be, also in the middle of a list: there the labels that
    are aborted are out, and the others alive.
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
    """Go through a list, and note at each of its steps how it will end as seen from there."""
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
