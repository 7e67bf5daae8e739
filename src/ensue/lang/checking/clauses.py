"""Checks the clauses by which a filter relates events: `keep`, `bind latest`, `unless`, `having`.

The filter and its transformer have been checked before. Reported are unknown ports, conditions over
ports that are never bound, statements that change labels beside such clauses, and rules that must
remember events without a bound. Out go the ports that the clauses use.
"""

from __future__ import annotations

from ensue.lang.checking.filters import FilterNames
from ensue.lang.checking.ports import Ports, find_port
from ensue.lang.checking.predicates import check_having
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.derived.parts import statements_of
from ensue.lang.derived.relating import aggregates_of, has_timeout, relating_clauses
from ensue.lang.expressions.aggregates import AGGREGATES
from ensue.lang.syntax import Change, FilterCorrelation


def check_clauses(
    correlation: FilterCorrelation, ports: Ports, facts: FilterNames, scope: LibraryScope
) -> set[str]:
    used = _check_unless(correlation, ports, scope)
    having = correlation.clauses.having
    if having is not None:
        for port, span in check_having(having, ports, scope).items():
            used.add(port)
            if port in ports and port not in facts.ports:
                scope.warning(
                    "never-bound",
                    f"port `{port}` has no place in the filter, so `having` never finds its events",
                    span,
                    "only a port that stands in the filter has an event",
                )
    relating = relating_clauses(correlation)
    if relating:
        _refuse_changes(correlation, relating, scope)
        _warn_unbounded(correlation, scope)
    return used


def _check_unless(correlation: FilterCorrelation, ports: Ports, scope: LibraryScope) -> set[str]:
    used: set[str] = set()
    for port in correlation.clauses.unless:
        find_port(port.name, port.span, ports, scope)
        if port.name in used:
            scope.error(
                "duplicate-unless",
                f"port `{port.name}` is named twice after `unless`",
                port.span,
                "name it once",
            )
        used.add(port.name)
    return used


def _refuse_changes(
    correlation: FilterCorrelation, relating: list[str], scope: LibraryScope
) -> None:
    shown = " and ".join(f"`{each}`" for each in relating[:3])
    for statement in statements_of(correlation):
        if isinstance(statement, Change):
            scope.error(
                "change-with-clauses",
                f"`{statement.kind}` cannot stand in a correlation that uses {shown}",
                statement.span,
                "let `unless` forget what an event makes void, or put what is aborted into a "
                "correlation of its own",
            )


def _warn_unbounded(correlation: FilterCorrelation, scope: LibraryScope) -> None:
    """Warn of a rule that must remember events without a bound, since it has no window."""
    clauses = correlation.clauses
    if clauses.within is not None:
        return
    costly = sorted(
        {
            call.function.lower()
            for call in aggregates_of(correlation)
            if not AGGREGATES[call.function].running
        }
    )
    if costly:
        why = f"`{costly[0]}` is over all events since the last trigger"
    elif clauses.keep == "all" and has_timeout(correlation):
        why = "`keep all` keeps every event that a `timeout` has counted from"
    else:
        return
    scope.warning(
        "unbounded-memory",
        f"`{correlation.name}` remembers events without bound: {why}",
        correlation.span,
        "give it a window, such as `within 1 h`, or name in `unless` an event that ends the count"
        if costly
        else "give it a window, such as `within 1 h`, or leave `keep all` out",
    )
