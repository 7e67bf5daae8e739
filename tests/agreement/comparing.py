"""A trial held against its judge in every way, and the smallest trial that still differs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ensue.errors import LibraryError

from .observed import Difference, Observed
from .transfers import TRANSFERS
from .trials import Trial
from .ways import WAYS, observe

EVERY_WAY = (*WAYS, *TRANSFERS)
LONGEST_SMALLER = 400
"""How many smaller trials are tried for one difference."""


def ways_for(trial: Trial, names: Sequence[str] = EVERY_WAY) -> Iterator[str]:
    """The ways that have a meaning for a trial."""
    for name in names:
        if name in TRANSFERS and trial.lateness is not None:
            continue
        if name in WAYS and WAYS[name].changed and not trial.changes:
            continue
        yield name


def difference(trial: Trial, way: str, happened: Counter[str] | None = None) -> Difference | None:
    """What differs, or None; None too where the judge would have to try too much."""
    if way in TRANSFERS:
        try:
            expected, given = TRANSFERS[way](trial)
        except Exception as error:
            expected, given = Observed([]), Observed.failed(error)
    else:
        chosen = WAYS[way]
        judged = observe(trial, chosen.of_judge) if chosen.changed else trial.expected
        if judged is None:
            return None
        expected, given = judged, observe(trial, chosen, happened)
    return None if given.agrees_with(expected) else Difference(trial, way, expected, given)


def smallest(trial: Trial, found: Difference) -> Difference:
    """The difference with as much left out as possible."""
    tried = 0
    while tried < LONGEST_SMALLER:
        for less in trial.smaller():
            tried += 1
            try:
                again = difference(less, found.way)
            except LibraryError:
                continue
            # What did not crash is not made smaller into something that does.
            if again is not None and bool(again.given.raised) == bool(found.given.raised):
                trial, found = less, again
                break
            if tried >= LONGEST_SMALLER:
                break
        else:
            break
    return found


def compare(trial: Trial, names: Sequence[str] = EVERY_WAY) -> Mapping[str, int]:
    """What was tried, as numbers. Raises `AssertionError` with the first difference."""
    happened: Counter[str] = Counter()
    if trial.expected is None:
        return {"trials without an answer": 1}
    for way in ways_for(trial, names):
        found = difference(trial, way, happened)
        if found is not None:
            raise AssertionError(f"{smallest(trial, found)}")
        happened["runs"] += 1
    return happened


def main(arguments: Sequence[str]) -> int:
    from .kinds import KINDS, trial

    if len(arguments) < 2 or arguments[0] not in KINDS or not arguments[1].isdecimal():
        print(f"usage: python -m tests.agreement KIND SEED [WAY...]\nkinds: {', '.join(KINDS)}")
        print(f"ways: {', '.join(f'`{each}`' for each in EVERY_WAY)}", file=sys.stderr)
        return 2
    kind, seed, *ways = arguments
    drawn = trial(kind, int(seed))
    print(drawn)
    try:
        print(dict(compare(drawn, ways or EVERY_WAY)))
    except AssertionError as error:
        print(error)
        return 1
    return 0
