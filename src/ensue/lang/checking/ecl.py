"""Checks a correlation that is written as an ECL expression.

The walk keeps its own stack, since an expression may be nested deeper than Python likes to
recurse. Out go the ports that the expression uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.checking.ports import Ports, find_port
from ensue.lang.checking.predicates import check_holds
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.checking.transformers import check_output
from ensue.lang.syntax import (
    Constant,
    Ecl,
    EclCorrelation,
    Fail,
    Group,
    Holds,
    Modes,
    PortRef,
    Push,
    Round,
    Unless,
)


def check_ecl(correlation: EclCorrelation, ports: Ports, scope: LibraryScope) -> set[str]:
    _check_clauses(correlation, scope)
    used: set[str] = set()
    pushes = False
    for part in expressions_in(correlation.body):
        if isinstance(part, PortRef):
            find_port(part.name, part.span, ports, scope)
            used.add(part.name)
        elif isinstance(part, Holds):
            check_holds(part, ports, scope)
            used.update(ports)
        elif isinstance(part, Constant) and part.value:
            # `true` waits for an event on any port, so that it uses all of them.
            used.update(ports)
        elif isinstance(part, Round) and part.bound is not None and part.bound < 1:
            scope.error(
                "bad-count",
                f"`{part.kind}({part.bound})` has no round to run",
                part.span,
                f"the bound must be 1 or more; without one, write `{part.kind} {{ ... }}`",
            )
        elif isinstance(part, Push):
            pushes = True
            if part.type is not None and scope.check_type(part.type, part.type_span):
                check_output(f"`{part.type}`", part.type, correlation.output, part.type_span, scope)
    if not pushes:
        scope.warning(
            "never-pushes",
            f"`{correlation.name}` never puts anything out",
            correlation.span,
            "put `notify { ... }` around what should be told",
        )
    return used


def _check_clauses(correlation: EclCorrelation, scope: LibraryScope) -> None:
    clauses = correlation.clauses
    if clauses.within is not None:
        scope.error(
            "within-in-ecl",
            "an ECL expression cannot have `within`",
            clauses.within_span,
            "bound the time where it matters: `do { ... } unless { timeout(D) }`",
        )
    if clauses.bind is not None:
        scope.error(
            "bind-in-ecl",
            "an ECL expression binds no events, so it cannot have `bind`",
            clauses.bind_span,
            "remove it",
        )


def expressions_in(body: Ecl) -> Iterator[Ecl]:
    """An expression and all that is in it, from left to right."""
    pending = [body]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, Group):
            pending.extend(reversed(part.parts))
        elif isinstance(part, Unless):
            pending += (part.stop, part.body)
        elif isinstance(part, Modes):
            for mode in reversed(part.modes):
                pending += (mode.body, mode.guard)
        elif isinstance(part, Fail | Round | Push):
            pending.append(part.body)
