"""A library over the history before it goes live: how often it would have fired, and on which keys.

In come a library, the one in force, and a span of the history; out goes a `DryRun` with the outputs
counted by rule and by key, and with what differs between the two. Nothing runs live here, and the
history is only read. It ends at its limits: outputs, and seconds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from ensue.events.cloudevents import encode, write_json
from ensue.events.event import Event
from ensue.history import History
from ensue.history.asking.bounding import bounded_by
from ensue.library import Library

KEYS_SHOWN: Final = 50
OUTPUTS_SHOWN: Final = 100
MOST_OUTPUTS: Final = 200_000


class RuleRun(msgspec.Struct, frozen=True):
    """What a rule would have put out: how often, and the keys with the most of it."""

    rule: str
    outputs: int
    keys: int
    top_keys: list[tuple[str, int]]


class OutputDifference(msgspec.Struct, frozen=True):
    """Outputs of only one of the two versions: how many, and the first of them."""

    only_new: int
    only_in_force: int
    both: int
    new_outputs: list[msgspec.Raw]
    missing_outputs: list[msgspec.Raw]


class DryRun(msgspec.Struct, frozen=True):
    """`whole` is false if a limit ended the run, and `why` says which."""

    whole: bool
    why: str | None
    seconds: float
    outputs: int
    rules: list[RuleRun]
    first: list[msgspec.Raw]
    difference: OutputDifference | None


class _EndedError(Exception):
    """The time of a run is over."""


class _Limits:
    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._seconds = seconds
        self.met: str | None = None

    def within(self, outputs: Iterator[Event]) -> list[Event]:
        """The outputs, up to a limit."""
        found: list[Event] = []
        try:
            with bounded_by(self._look):
                for output in outputs:
                    found.append(output)
                    if len(found) >= MOST_OUTPUTS:
                        self.met = f"it was ended after {MOST_OUTPUTS:,} outputs"
                        break
                    self._look()
        except _EndedError:
            self.met = f"limit `query_seconds` ({self._seconds:g}) has ended it"
        return found

    def _look(self) -> None:
        """For each event and output: a rule that puts nothing out takes time, too."""
        if time.monotonic() > self._until:
            raise _EndedError


def dry_run(
    history: History,
    library: Library,
    in_force: Library | None,
    since: int | None,
    until: int | None,
    seconds: float,
) -> DryRun:
    """The outputs of a library over a span of a history, beside those of another."""
    started = time.monotonic()
    limits = _Limits(seconds if in_force is None else seconds / 2)
    outputs = limits.within(history.backtest(library, since, until))
    by_rule: dict[str, Counter[str]] = {name: Counter() for name in library.correlations.names}
    for output in outputs:
        key = output.extensions.get("partitionkey", "")
        by_rule[output.extensions["correlation"]][key] += 1
    difference = None
    if in_force is not None:
        limits_of_other = _Limits(seconds / 2)
        others = limits_of_other.within(history.backtest(in_force, since, until))
        limits.met = limits.met or limits_of_other.met
        difference = _difference(outputs, others)
    return DryRun(
        limits.met is None,
        limits.met,
        round(time.monotonic() - started, 3),
        len(outputs),
        [
            RuleRun(rule, keys.total(), len(keys), keys.most_common(KEYS_SHOWN))
            for rule, keys in by_rule.items()
        ],
        [msgspec.Raw(encode(each)) for each in outputs[:OUTPUTS_SHOWN]],
        difference,
    )


def _difference(outputs: list[Event], others: list[Event]) -> OutputDifference:
    new, old = Counter(map(_identity, outputs)), Counter(map(_identity, others))
    only_new, only_old = new - old, old - new
    return OutputDifference(
        only_new.total(),
        only_old.total(),
        (new & old).total(),
        _first(outputs, only_new),
        _first(others, only_old),
    )


def _first(outputs: list[Event], wanted: Counter[tuple[str, ...]]) -> list[msgspec.Raw]:
    left = wanted.copy()
    shown: list[msgspec.Raw] = []
    for output in outputs:
        identity = _identity(output)
        if left[identity] > 0 and len(shown) < OUTPUTS_SHOWN:
            left[identity] -= 1
            shown.append(msgspec.Raw(encode(output)))
    return shown


def _identity(output: Event) -> tuple[str, ...]:
    """What makes two outputs the same: everything but the id, which counts within a version."""
    said = [str(output.extensions.get(name, "")) for name in ("correlation", "trigger", "labels")]
    key = str(output.extensions.get("partitionkey", ""))
    return output.type, str(output.time), *said, key, write_json(output.data)
