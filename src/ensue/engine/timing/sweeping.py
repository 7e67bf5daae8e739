"""When to sweep: to look for keys that hold nothing any more, at little cost for each event.

A sweep goes through all keys. It is due when there are `growth` times as many keys as the last
sweep has left, or when the clock has moved by the longest window or timeout of the rules. Where a
sweep finds that most keys still hold something, the next one waits for twice that time.
"""

from __future__ import annotations

from collections.abc import Iterable

from ensue.engine.instance import ENDLESS
from ensue.lang.derived.parts import timeouts_in
from ensue.lang.syntax import Correlation, EclCorrelation


class Sweeps:
    """A sweep is due from `most_keys` keys on, or from the time `due` on.

    `longest` is the longest window or timeout; `growth` is how many times as many keys there may be
    as the last sweep has left.
    """

    def __init__(self, fewest_keys: int, longest: int | None, growth: int = 2) -> None:
        self._fewest = fewest_keys
        self._longest = longest
        self._growth = growth
        self._wait = longest
        self.most_keys = fewest_keys
        self.due = ENDLESS if longest is None else -ENDLESS

    def begin(self, now: int) -> None:
        """Count the time from here."""
        if self._wait is not None:
            self.due = now + self._wait

    def done(self, before: int, left: int, now: int) -> None:
        """A sweep is done: of `before` keys, `left` still hold something."""
        self.most_keys = max(self._fewest, self._growth * left)
        if self._wait is not None:
            self._wait = 2 * self._wait if 2 * left > max(before, self._fewest) else self._longest
        self.begin(now)


def longest_wait(correlations: Iterable[Correlation]) -> int | None:
    """The longest window or timeout of some rules; None if they have neither."""
    found = []
    for each in correlations:
        if each.clauses.within is not None:
            found.append(each.clauses.within.microseconds)
        body = each.body if isinstance(each, EclCorrelation) else each.branches
        found += [after.microseconds for after in timeouts_in(body)]
    return max(found, default=None)
