"""Checks the expressions of a correlation where they stand.

`where` and `< ... >` ask one event; a value in `push new` asks the events bound to the ports. Here
names get their types; what may be done with values of those types is checked by
`ensue.lang.expressions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ensue.events.types import ValueType
from ensue.lang.checking.names import TIMESTAMP, attribute_type, data_type, report_unknown
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.expressions import Expression, Name
from ensue.lang.expressions.fitting import check_value
from ensue.lang.expressions.kinds import check_expression, check_predicate
from ensue.lang.source import Span
from ensue.lang.syntax import Assignment, EventPort, Holds, Port


def check_where(
    port: EventPort, where: Expression, ports: Mapping[str, Port], scope: LibraryScope
) -> None:
    def resolve(name: Name) -> ValueType | None:
        return _on_events(scope, [port.type], name, 0, ports)

    check_predicate(where, resolve, scope.diagnostics)


def check_holds(part: Holds, ports: Mapping[str, Port], scope: LibraryScope) -> None:
    # A dictionary keeps one of each and their order.
    types = list(dict.fromkeys(each.type for each in ports.values() if isinstance(each, EventPort)))

    def resolve(name: Name) -> ValueType | None:
        return _on_events(scope, types, name, 0, ports)

    check_predicate(part.predicate, resolve, scope.diagnostics)


def check_assigned_value(
    assignment: Assignment,
    wanted: ValueType | None,
    ports: Mapping[str, Port],
    scope: LibraryScope,
) -> Mapping[str, Span]:
    """Check a value of `push new`; out go the ports it uses, each with the place of its name.

    Where it is not known what type of value is wanted, only the names in it are checked.
    """
    used: dict[str, Span] = {}

    def resolve(name: Name) -> ValueType | None:
        return _on_ports(scope, ports, name, used)

    if wanted is None:
        check_expression(assignment.value, resolve, scope.diagnostics)
    else:
        check_value(assignment.value, wanted, resolve, scope.diagnostics)
    return used


def _on_events(
    scope: LibraryScope,
    type_names: Sequence[str],
    name: Name,
    start: int,
    ports: Mapping[str, Port],
) -> ValueType | None:
    """The type of a name, or of what of it follows from part `start` on, as events have it."""
    first, *rest = name.parts[start:]
    span = scope.part_span(name, start)
    advice = None
    if start == 0 and rest and first in ports:
        advice = f"a predicate asks one event, so the port is not named: write `{'.'.join(rest)}`"
    if not rest:
        return attribute_type(scope, type_names, first, span)
    # Only data has parts: a dotted name is never a CloudEvents attribute.
    if not all(each in scope.types for each in type_names):
        return None
    known = [data_type(scope, each, first) for each in type_names]
    found = [each for each in known if each is not None]
    if not found:
        report_unknown(scope, type_names, first, span, advice=advice, certain=advice is not None)
    elif all(each.type is not None for each in found):
        shown = next(each.type for each in found)
        scope.error(
            "attribute-without-parts",
            f"attribute `{first}` is a `{shown}` and has no part `{rest[0]}`",
            scope.part_span(name, start + 1),
            f"write `{'.'.join(name.parts[: start + 1])}`",
        )
    return None


def _on_ports(
    scope: LibraryScope, ports: Mapping[str, Port], name: Name, used: dict[str, Span]
) -> ValueType | None:
    """The type of `port.name` in a value."""
    first, *rest = name.parts
    span = scope.part_span(name, 0)
    port = ports.get(first)
    if not rest:
        _report_bare(scope, ports, first, name.span)
        return None
    if port is None:
        scope.error("unknown-port", f"there is no port `{first}`", span, scope.hint(first, ports))
        return None
    used.setdefault(first, span)
    if isinstance(port, EventPort):
        return _on_events(scope, [port.type], name, 1, ports)
    if [each.lower() for each in rest] == ["time"]:
        return TIMESTAMP
    scope.error(
        "unknown-attribute",
        f"`{first}` is a timer and has no attribute `{'.'.join(rest)}`",
        scope.part_span(name, 1),
        f"a timer has a time only: write `{first}.time`",
    )
    return None


def _report_bare(scope: LibraryScope, ports: Mapping[str, Port], name: str, span: Span) -> None:
    if name in ports:
        message = f"`{name}` is a port, and a value needs one of its attributes"
        hint = f"write `{name}.` and the name of the attribute"
    else:
        message = f"`{name}` does not say which event it is read from"
        owners = [
            port.name
            for port in ports.values()
            if isinstance(port, EventPort)
            and port.type in scope.types
            and data_type(scope, port.type, name) is not None
        ] or [port.name for port in ports.values()]
        hint = f"name the port: `{owners[0]}.{name}`"
    scope.error("bare-name", message, span, hint)
