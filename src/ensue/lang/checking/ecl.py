"""Checks a correlation that is written as an ECL expression.

The walk has its own stack, since an expression may be nested deeper than Python can recurse. Out go
the ports that the expression uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.checking.names import look_up
from ensue.lang.checking.ports import Ports, event_ports, find_port
from ensue.lang.checking.predicates import check_holds
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.checking.transformers import check_output
from ensue.lang.derived.keys import key_places
from ensue.lang.source import Span
from ensue.lang.syntax import (
    CommonKey,
    Constant,
    Ecl,
    EclCorrelation,
    Fail,
    Group,
    Holds,
    Key,
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
    pushed: dict[str, Span] = {}
    for part in expressions_in(correlation.body):
        if isinstance(part, PortRef):
            find_port(part.name, part.span, ports, scope)
            used.add(part.name)
        elif isinstance(part, Holds):
            check_holds(part, ports, scope)
            used.update(ports)
        elif isinstance(part, Constant) and part.value:
            # `true` waits for an event on any port, so that it uses all ports.
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
            if part.type is None:
                pushed.setdefault(correlation.output, correlation.output_span)
            elif scope.check_type(part.type, part.type_span):
                check_output(f"`{part.type}`", part.type, correlation.output, part.type_span, scope)
                pushed.setdefault(part.type, part.type_span)
    for type_name, span in pushed.items():
        if type_name in scope.types:
            _check_filled(correlation, type_name, span, ports, scope)
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
    for word, given, span in (
        ("keep", clauses.keep, clauses.keep_span),
        ("unless", clauses.unless, clauses.unless_span),
        ("having", clauses.having, clauses.having_span),
    ):
        if given:
            scope.error(
                "clause-in-ecl",
                f"an ECL expression cannot have the clause `{word}`",
                span,
                "write `do { ... } unless { ... }` inside of the expression"
                if word == "unless"
                else "write the rule as a `correlation`, which can",
            )
    if clauses.bind is not None:
        scope.error(
            "bind-in-ecl",
            "an ECL expression binds no events, so it cannot have `bind`",
            clauses.bind_span,
            "remove it",
        )


def _check_filled(
    correlation: EclCorrelation, type_name: str, span: Span, ports: Ports, scope: LibraryScope
) -> None:
    """Report attributes of an output that no key fills, since ECL carries no data."""
    places = key_places(correlation.clauses.by)
    attributes = scope.types.attributes(type_name)
    empty = [name for name in attributes if name not in places]
    if empty:
        shown = " and ".join(f"`{each}`" for each in empty[:3])
        more = f" and {len(empty) - 3} more" if len(empty) > 3 else ""
        # `ensue check` makes an error of it. Rules still run: outputs come at the right moments.
        scope.warning(
            "ecl-output-data",
            f"`{type_name}` declares {shown}{more}, and an ECL expression carries no data: only "
            "attributes named like a key after `by` are filled, with the key",
            span,
            f"push a type without {'it' if len(empty) == 1 else 'them'}, or write a `correlation` "
            f"with `push new {type_name} {{ ... }}`",
        )
    for name in attributes.keys() & places.keys():
        kinds = _key_kinds(correlation.clauses.by[places[name]], ports, scope)
        # A whole number also fits where a real is declared.
        fitting = kinds | ({"real"} if "integer" in kinds else set())
        if kinds and attributes[name].kind not in fitting:
            scope.error(
                "value-does-not-fit",
                f"attribute `{name}` of `{type_name}` is a `{attributes[name]}`, and the key that "
                f"fills it is a {sorted(kinds)[0]}",
                span,
                "declare it with the type of the key",
            )


def _key_kinds(key: Key, ports: Ports, scope: LibraryScope) -> set[str]:
    """The declared kinds of a key; empty where they are not known."""
    found: set[str] = set()
    for port in event_ports(ports.values()):
        name = key.name if isinstance(key, CommonKey) else dict(key.parts).get(port.name)
        known = look_up(scope, port.type, name) if name and port.type in scope.types else None
        if known is not None and known.type is not None:
            found.add(known.type.kind)
    return found


def expressions_in(body: Ecl) -> Iterator[Ecl]:
    """An expression and all of its parts, from left to right."""
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
