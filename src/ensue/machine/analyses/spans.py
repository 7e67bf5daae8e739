"""How long a match of a filter lasts at least, held against its window.

In comes a correlation; out come the parts of its filter that no match within the window has: a
`timeout`, or firings of a timer, that need more time than `within` allows. A match lasts from its
first event to the moment that completes it, which both lie in the window. A `timeout` adds its
time, and two firings of one timer are a period apart. What else could keep a part from being met is
not asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ensue.lang.derived.parts import parts_of
from ensue.lang.syntax import (
    Both,
    Correlation,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    Then,
    Timeout,
    TimerPort,
    Times,
)


@dataclass(frozen=True, slots=True)
class NeverMet:
    """A part of a filter, and how many microseconds a match with it lasts at least."""

    part: Timeout | PortRef
    span: int


def never_met(correlation: Correlation) -> Iterator[NeverMet]:
    """The parts that no match in the window has; none without a window."""
    if not isinstance(correlation, FilterCorrelation) or correlation.clauses.within is None:
        return
    window = correlation.clauses.within.microseconds
    periods = {
        port.name: port.period.microseconds
        for port in correlation.ports
        if isinstance(port, TimerPort)
    }
    spans = _Spans(periods)
    for branch in correlation.branches:
        timed: dict[int, Timeout | PortRef] = {
            id(part): part
            for part in parts_of([branch])
            if isinstance(part, Timeout) or (isinstance(part, PortRef) and part.name in periods)
        }
        # What is repeated by the text of a tree may be one node; its places are alike.
        for part in timed.values():
            span = spans.with_part(branch, part)
            if span is not None and span > window:
                yield NeverMet(part, span)


class _Spans:
    """Spans of expressions over timers with these periods, in microseconds."""

    def __init__(self, periods: Mapping[str, int]) -> None:
        self._periods = periods

    def least(self, x: Filter) -> int:
        """The shortest span of a match."""
        match x:
            case PortRef() | Timeout():
                return 0
            case Labelled(_, body):
                return self.least(body)
            case Both(parts):
                return max(map(self.least, parts))
            case Either(parts):
                return min(map(self.least, parts))
            case Times(body, count):
                return self._repeated(body, count)
            case Then(parts):
                return self._chain(parts, [None] * len(parts))

    def with_part(self, x: Filter, part: Filter) -> int | None:
        """The shortest span of a match in which a part takes part; None if it is not in there."""
        if x is part:
            return 0
        match x:
            case PortRef() | Timeout():
                return None
            case Labelled(_, body):
                return self.with_part(body, part)
            case Both(parts):
                inside = [self.with_part(each, part) for each in parts]
                if not any(each is not None for each in inside):
                    return None
                pairs = zip(parts, inside, strict=True)
                return max(self.least(each) if has is None else has for each, has in pairs)
            case Either(parts):
                known = [self.with_part(each, part) for each in parts]
                return min((each for each in known if each is not None), default=None)
            case Times(body, count):
                within = self.with_part(body, part)
                if within is None:
                    return None
                return self._repeated(body, count) - self.least(body) + within
            case Then(parts):
                spans = [self.with_part(each, part) for each in parts]
                return self._chain(parts, spans) if any(s is not None for s in spans) else None

    def _repeated(self, body: Filter, count: int) -> int:
        period = self._period(body)
        return self.least(body) * count + (count - 1) * (period or 0)

    def _chain(self, parts: Sequence[Filter], known: Sequence[int | None]) -> int:
        """The earliest moment at which the parts have come one after the other, from 0 on."""
        now = 0
        fired: dict[str, int] = {}
        for part, span in zip(parts, known, strict=True):
            if isinstance(part, Timeout):
                now += part.after.microseconds
                continue
            timer, count = self._timer(part)
            if timer is None:
                now += self.least(part) if span is None else span
                continue
            period = self._periods[timer]
            now = max(now, fired[timer] + period) if timer in fired else now
            now += (count - 1) * period
            fired[timer] = now
        return now

    def _timer(self, x: Filter) -> tuple[str | None, int]:
        """The timer whose firings a part is, and how many of them."""
        match x:
            case PortRef(name) if name in self._periods:
                return name, 1
            case Labelled(_, body):
                return self._timer(body)
            case Times(body, count):
                inside, inner = self._timer(body)
                return inside, inner * count
            case _:
                return None, 0

    def _period(self, body: Filter) -> int | None:
        name, _ = self._timer(body)
        return None if name is None else self._periods[name]
