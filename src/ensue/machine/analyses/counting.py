"""Counts as repetitions: `f having count(f) >= 5` says what `f{5}` says.

In comes a correlation whose filter is one port; out goes one without the conditions that only count
the events of that port, which its filter repeats instead. Both trigger at an event of the port when
so many of its events are remembered within the window, they forget alike, and the port stands for
the same events under every `bind`: all places of a repetition have one stretch. A count in a filter
of several parts, or one that is bounded from above, is left as it is.
"""

from __future__ import annotations

from dataclasses import replace

from ensue.lang.expressions import Call, Comparison, Expression, Literal, Logic, Name
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.syntax import Correlation, Filter, FilterCorrelation, Labelled, PortRef, Times

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def with_repetitions(correlation: Correlation) -> Correlation:
    """The correlation with counts as repetitions; itself where it counts otherwise."""
    if not isinstance(correlation, FilterCorrelation) or len(correlation.branches) != 1:
        return correlation
    (branch,) = correlation.branches
    having = correlation.clauses.having
    found = _repeated(branch)
    if having is None or found is None:
        return correlation
    port, count = found
    left: list[Expression] = []
    for part in _conjuncts(having):
        least = _least_count(part, port)
        if least is None:
            left.append(part)
        else:
            count = max(count, least)
    if len(left) == len(_conjuncts(having)) or count > DEFAULT_LIMITS.repetition:
        return correlation
    rest = left[0] if len(left) == 1 else Logic(tuple(left), ("AND",) * (len(left) - 1))
    return replace(
        correlation,
        branches=(_with_count(branch, count),),
        clauses=replace(correlation.clauses, having=rest if left else None),
    )


def _repeated(x: Filter) -> tuple[str, int] | None:
    """The port that is all of a filter, and how often it is asked for."""
    match x:
        case PortRef(name):
            return name, 1
        case Times(PortRef(name), count):
            return name, count
        case Labelled(_, body):
            return _repeated(body)
        case _:
            return None


def _with_count(x: Filter, count: int) -> Filter:
    match x:
        case Labelled(_, body):
            return replace(x, body=_with_count(body, count))
        case Times(body):
            return replace(x, body=body, count=count)
        case _:
            return x if count == 1 else Times(x, count)


def _conjuncts(having: Expression) -> tuple[Expression, ...]:
    is_chain = isinstance(having, Logic) and set(having.operators) == {"AND"}
    return having.operands if isinstance(having, Logic) and is_chain else (having,)


def _least_count(x: Expression, port: str) -> int | None:
    """The least count that a condition asks of a port, if that is all it asks."""
    match x:
        case Comparison(Call("COUNT", (Name((asked,)),)), ((sign, Literal(int() as number)),)):
            pass
        case Comparison(Literal(int() as number), ((turned, Call("COUNT", (Name((asked,)),))),)):
            sign = _TURNED.get(turned, turned)
        case _:
            return None
    if asked != port or isinstance(number, bool) or sign not in (">", ">="):
        return None
    return max(1, number + (sign == ">"))
