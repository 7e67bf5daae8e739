"""Which rules relate several events, so that section 10 of the definitions is what they mean."""

from __future__ import annotations

from ensue.lang.syntax import (
    Both,
    Correlation,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PushNew,
    Then,
    Timeout,
    Times,
)

AGGREGATES = ("count", "distinct", "sum", "avg", "min", "max", "first", "last")


def relates_events(correlation: Correlation) -> bool:
    """Whether a rule has a clause, a timeout or an aggregate that only section 10 knows."""
    if not isinstance(correlation, FilterCorrelation):
        return False
    clauses = correlation.clauses
    return bool(
        clauses.keep not in (None, "none")
        or clauses.unless
        or clauses.having is not None
        or clauses.bind == "latest"
        or any(has_timeout(branch) for branch in correlation.branches)
        or any(
            has_aggregate(str(assignment.value))
            for case in correlation.cases
            for statement in case.statements
            if isinstance(statement, PushNew)
            for assignment in statement.assignments
        )
    )


def has_timeout(node: Filter) -> bool:
    match node:
        case Timeout():
            return True
        case Labelled(_, body) | Times(body, _):
            return has_timeout(body)
        case Both(parts) | Either(parts) | Then(parts):
            return any(has_timeout(part) for part in parts)
        case _:
            return False


def has_aggregate(shown: str) -> bool:
    """Whether the representation of a value has a call of an aggregate in it."""
    return any(f"function='{name.upper()}'" in shown for name in AGGREGATES)
