"""What rules and libraries have counted, in all and since the process began.

Runs count for as long as their library is there, over starts, and people are shown that. Counters
of metrics begin at zero with the process, all of them together, so what was counted before the
start is taken away here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ensue.server.station.rules.hosted import Hosted


class Refused(NamedTuple):
    """Events that a library could not read, and those of them that found its rules full."""

    refused: int
    full: int


def rule_counts(hosted: Mapping[str, Hosted]) -> dict[tuple[str, str], int]:
    """Outputs of each rule of each library. Any thread may ask."""
    return {
        (name, rule): each.outputs
        for name, library in list(hosted.items())
        for rule, each in list(library.counted.rules.items())
    }


class CountsSinceStart:
    def __init__(self) -> None:
        self._rules: dict[tuple[str, str], int] = {}
        self._refused: dict[str, Refused] = {}

    def begin(self, hosted: Mapping[str, Hosted]) -> None:
        """Count from what libraries have counted until now."""
        self._rules = rule_counts(hosted)
        self._refused = {
            name: Refused(each.counted.refused, each.counted.full) for name, each in hosted.items()
        }

    def forget(self, name: str) -> None:
        """A library begins without counts."""
        self._rules = {key: count for key, count in self._rules.items() if key[0] != name}
        self._refused.pop(name, None)

    def outputs(self, hosted: Mapping[str, Hosted]) -> dict[tuple[str, str], int]:
        return {
            # A rule that was taken out and put back counts afresh.
            key: count - before if (before := self._rules.get(key, 0)) <= count else count
            for key, count in rule_counts(hosted).items()
        }

    def refused(self, hosted: Mapping[str, Hosted]) -> dict[str, Refused]:
        found: dict[str, Refused] = {}
        for name, each in list(hosted.items()):
            before = self._refused.get(name, Refused(0, 0))
            counted = each.counted
            found[name] = Refused(counted.refused - before.refused, counted.full - before.full)
        return found
