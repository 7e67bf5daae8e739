"""The clauses of a filter that relate events to each other.

In comes a correlation; out go its parts that need remembered events: `keep`, `bind latest`,
`unless`, `having`, `timeout` in a filter, and aggregates in the values of statements. A rule with
any of these runs from remembered events, and cannot abort, revive or toggle labels. Their meaning
is defined in `ensue.engine.reference`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.derived.parts import parts_of, statements_of, values_in
from ensue.lang.expressions import Call, Expression, Name
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.expressions.nesting import parts_of as operands_of
from ensue.lang.syntax import Correlation, FilterCorrelation, Timeout


def relating_clauses(correlation: Correlation) -> list[str]:
    """The words of the parts that relate events; most correlations have none."""
    if not isinstance(correlation, FilterCorrelation):
        return []
    clauses = correlation.clauses
    words = []
    # `keep none` is the default.
    if clauses.keep in ("last", "all"):
        words.append(f"keep {clauses.keep}")
    if clauses.bind == "latest":
        words.append("bind latest")
    if clauses.unless:
        words.append("unless")
    if clauses.having is not None:
        words.append("having")
    if has_timeout(correlation):
        words.append("timeout")
    words += sorted({call.function.lower() for call in assigned_aggregates(correlation)})
    return words


def relates_events(correlation: Correlation) -> bool:
    return bool(relating_clauses(correlation))


def has_timeout(correlation: Correlation) -> bool:
    """Whether a filter contains a `timeout`."""
    return isinstance(correlation, FilterCorrelation) and any(
        isinstance(part, Timeout) for part in parts_of(correlation.branches)
    )


def assigned_aggregates(correlation: FilterCorrelation) -> list[Call]:
    """The aggregates in the values of statements."""
    values = values_in(statements_of(correlation))
    return [call for value in values for call in aggregates_in(value)]


def aggregates_of(correlation: FilterCorrelation) -> list[Call]:
    """All aggregates of a correlation: those of `having`, and those of its statements."""
    having = correlation.clauses.having
    asked = [] if having is None else list(aggregates_in(having))
    return asked + assigned_aggregates(correlation)


def aggregated_name(call: Call) -> tuple[str, ...]:
    """The argument of an aggregate: a port, and the name of an attribute if there is one."""
    (name,) = call.arguments
    assert isinstance(name, Name), "an aggregate is of a name"
    return name.parts


def aggregates_in(expression: Expression) -> Iterator[Call]:
    pending = [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, Call) and part.function in AGGREGATES:
            yield part
        else:
            pending.extend(operands_of(part))
