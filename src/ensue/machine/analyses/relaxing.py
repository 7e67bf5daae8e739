"""The relaxed form of a rule: without the clauses that relate events, it matches more often.

In comes a correlation with `having`, `unless`, `keep`, `bind latest` or `timeout`; out goes one
without them that puts something out at each trigger. `having` and `unless` only prevent triggers, a
`timeout` is a further condition, and `keep` matters only after a first match. So a rule whose
relaxed form can never trigger can never trigger itself; nothing else follows. A rule with a
`deadline` has no relaxed form, since that timer depends on triggers.
"""

from __future__ import annotations

from dataclasses import replace

from ensue.lang.syntax import (
    Both,
    Case,
    Correlation,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    LabelTrue,
    PortRef,
    PushNew,
    Then,
    Timeout,
    TimerPort,
    Times,
)


def relaxed(correlation: Correlation) -> Correlation | None:
    """The relaxed form of a rule; None if it has none."""
    timers = [each.kind for each in correlation.ports if isinstance(each, TimerPort)]
    if not isinstance(correlation, FilterCorrelation) or "deadline" in timers:
        return None
    clauses = replace(correlation.clauses, bind=None, keep=None, unless=(), having=None)
    return replace(
        correlation,
        branches=tuple(_without_timeouts(each) for each in correlation.branches),
        clauses=clauses,
        initially=(),
        cases=(Case(LabelTrue(), (PushNew(correlation.output),)),),
    )


def _without_timeouts(x: Filter) -> Filter:
    match x:
        case Labelled(_, body):
            return _without_timeouts(body)
        case Times(body, count):
            return Times(_without_timeouts(body), count)
        case Both(parts):
            return Both(tuple(_without_timeouts(part) for part in parts))
        case Either(parts):
            return Either(tuple(_without_timeouts(part) for part in parts))
        case Then(parts):
            left = [_without_timeouts(part) for part in parts if not isinstance(part, Timeout)]
            return left[0] if len(left) == 1 else Then(tuple(left))
        case PortRef() | Timeout():
            return x
