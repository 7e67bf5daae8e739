"""The conditions of a correlation that can never hold, and a `having` that always does.

In come a correlation and the declared types; out go its `where` and `having` conditions that no
events satisfy, each with the reason. When `having` is evaluated the filter has matched: its events
exist and lie in the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ensue.events.types import TypeSystem
from ensue.lang.derived.relating import aggregates_in
from ensue.lang.durations import print_duration
from ensue.lang.expressions import Call, Expression, Literal, Name
from ensue.lang.expressions.nesting import parts_of as operands_of
from ensue.lang.expressions.tree import Arithmetic, Comparison, Logic, Negate, Not
from ensue.lang.syntax import (
    Both,
    Correlation,
    Either,
    EventPort,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    Then,
    Timeout,
    TimerPort,
    Times,
)
from ensue.machine.analyses.conditions.contradiction import Contradiction, Fact, contradiction_in

CONTEXT_KINDS = {"id": "string", "source": "string", "time": "timestamp", "type": "string"}
MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class NeverHolds:
    """A condition, the port whose `where` it is (None for `having`), and why it never holds."""

    condition: Expression
    port: str | None
    why: Contradiction


def conditions_that_never_hold(correlation: Correlation, types: TypeSystem) -> Iterator[NeverHolds]:
    ports = {each.name: each.type for each in correlation.ports if isinstance(each, EventPort)}
    for port in correlation.ports:
        if isinstance(port, EventPort) and port.where is not None:
            kinds = _kinds_on(types, port.type)
            found = contradiction_in(port.where, lambda name, k=kinds: k(name.parts))  # type: ignore[misc]
            if found is not None:
                yield NeverHolds(port.where, port.name, found)
    if isinstance(correlation, FilterCorrelation) and correlation.clauses.having is not None:
        having = correlation.clauses.having
        found = _having(correlation, having, ports, types)
        if found is not None:
            yield NeverHolds(having, None, found)


def without_needless_having(correlation: Correlation, types: TypeSystem) -> Correlation:
    """The rule without its `having` if that holds at each match, as `count(a) >= 1` may."""
    if not isinstance(correlation, FilterCorrelation) or correlation.clauses.having is None:
        return correlation
    having = correlation.clauses.having
    ports = {each.name: each.type for each in correlation.ports if isinstance(each, EventPort)}
    if not _has_value(having) or not _having(correlation, Not(having), ports, types):
        return correlation
    return replace(correlation, clauses=replace(correlation.clauses, having=None))


def _has_value(x: Expression) -> bool:
    """Whether a condition is true or false whatever the events, since all that it asks exists."""
    match x:
        case Literal() | Call("COUNT" | "DISTINCT"):
            return True
        case Logic() | Not() | Comparison():
            return all(map(_has_value, operands_of(x)))
        case _:
            return False


def _having(
    correlation: FilterCorrelation, having: Expression, ports: dict[str, str], types: TypeSystem
) -> Contradiction | None:
    def kind_of(name: Name) -> str | None:
        first, *rest = name.parts
        return _kinds_on(types, ports[first])(tuple(rest)) if first in ports and rest else None

    def aggregate_kind(call: Call) -> str | None:
        if call.function in ("COUNT", "DISTINCT"):
            return "integer"
        if call.function == "AVG":
            return "real"
        (argument,) = call.arguments
        return kind_of(argument) if isinstance(argument, Name) else None

    return contradiction_in(having, kind_of, aggregate_kind, _facts(correlation, having))


def _kinds_on(types: TypeSystem, type_name: str) -> Callable[[tuple[str, ...]], str | None]:
    """The kind of a name on the events of a type; None for a name that is not declared."""
    attributes, derived = types.attributes(type_name), types.derived(type_name)

    def kind(parts: tuple[str, ...]) -> str | None:
        text = ".".join(parts)
        if text in CONTEXT_KINDS:
            return CONTEXT_KINDS[text]
        declared = attributes.get(text)
        if declared is None and text in derived:
            return derived[text].type.kind
        return declared.kind if declared is not None else None

    return kind


def _facts(correlation: FilterCorrelation, having: Expression) -> Iterator[Fact]:
    """Facts that hold whenever `having` is evaluated, such as that a count is not negative."""
    calls = {(call.function, call.arguments): call for call in aggregates_in(having)}
    for call in calls.values():
        match call:
            case Call("COUNT", (Name((port,)),)):
                least = min(_least(branch, port) for branch in correlation.branches)
                reason = (
                    f"the filter asks for at least {least:,} `{port}`"
                    if least
                    else "no count is negative"
                )
                yield Fact(_compare(call, ">=", Literal(least)), reason)
                yield from _most_counted(correlation, call, port)
            case Call("DISTINCT", (Name((port, *_)),)):
                yield Fact(_compare(call, ">=", Literal(0)), "no count is negative")
                counted = Call("COUNT", (Name((port,)),))
                reason = f"`{port}` has no more different values than events"
                yield Fact(_compare(call, "<=", counted), reason)
            case Call("MIN", arguments):
                most = Call("MAX", arguments)
                yield Fact(_compare(call, "<=", most), "a `min` is no more than the `max`")
    window = correlation.clauses.within
    if window is not None:
        reason = f"all events lie within {print_duration(window)}"
        seconds = Literal(window.microseconds / MICROSECONDS)
        for span in dict.fromkeys(_times_between(having)):
            yield Fact(_compare(span, "<=", seconds), reason)
            yield Fact(_compare(span, ">=", Negate(seconds)), reason)


def _most_counted(correlation: FilterCorrelation, call: Call, port: str) -> Iterator[Fact]:
    """How many firings of a timer the window has, and events of a port that `unless` names."""
    window = correlation.clauses.within
    timer = next(
        (t for t in correlation.ports if t.name == port and isinstance(t, TimerPort)), None
    )
    if timer is not None and window is not None:
        most = window.microseconds // timer.period.microseconds + 1
        reason = (
            f"`{port}` fires at most {most:,} times in {print_duration(window)}, which is closed"
            " at both ends"
        )
        yield Fact(_compare(call, "<=", Literal(most)), reason)
    if port in {each.name for each in correlation.clauses.unless}:
        # One that completes a match comes before it makes the rule forget the one before.
        reason = f"each `{port}` makes the rule forget those before it, by `unless`"
        yield Fact(_compare(call, "<=", Literal(2)), reason)


def _compare(left: Expression, operator: str, right: Expression) -> Expression:
    return Comparison(left, ((operator, right),))


def _times_between(x: Expression) -> Iterator[Expression]:
    """Each `b.time - a.time` in a condition, also of the first, last, least or latest times."""
    match x:
        case Arithmetic(first, (("-", second),)) if _is_time(first) and _is_time(second):
            yield x
    for part in operands_of(x):
        yield from _times_between(part)


def _is_time(x: Expression) -> bool:
    match x:
        case Name((_, "time")) | Call("FIRST" | "LAST" | "MAX" | "MIN", (Name((_, "time")),)):
            return True
        case _:
            return False


def _least(x: Filter, port: str) -> int:
    """The least number of events of a port in a match of an expression."""
    match x:
        case PortRef(name):
            return int(name == port)
        case Timeout():
            return 0
        case Labelled(_, body):
            return _least(body, port)
        case Both(parts):
            return max(_least(part, port) for part in parts)
        case Either(parts):
            return min(_least(part, port) for part in parts)
        case Then(parts):
            return sum(_least(part, port) for part in parts)
        case Times(body, count):
            return _least(body, port) * count
