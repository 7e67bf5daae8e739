"""Checks the expressions of a correlation by the clause in which they stand.

`where` and `< ... >` read one event; `having` and values in `push new` read the events bound to
ports. Here names get their types; `ensue.lang.expressions.checking` checks what may be done with
values of these types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from ensue.events.types import ValueType
from ensue.lang.checking.names import (
    EXTENSION_NAME,
    NOTHING,
    TAKEN_FOR_AN_EXTENSION,
    TIMESTAMP,
    agreed,
    attribute_type,
    data_type,
    report_unknown,
)
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.expressions import Call, Comparison, Expression, Name
from ensue.lang.expressions.checking.fitting import check_value
from ensue.lang.expressions.checking.kinds import check_expression, check_predicate
from ensue.lang.expressions.names import names_in
from ensue.lang.expressions.nesting import nodes_in
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.expressions.tree import After, Before, Compared, During, Related
from ensue.lang.source import Span
from ensue.lang.syntax import EventPort, Holds, Port

_LONGEST_SHOWN = 80


def type_on_event(scope: LibraryScope, type_name: str, name: Name) -> ValueType | None:
    """The type of a name on events of one type, where no ports are; reports an unknown name."""
    return _on_events(scope, [type_name], name, 0, {}, _without_port)


Instead = Callable[[Name], str]
"""The advice for a name that begins with a port, in a predicate that reads one event."""


def check_where(
    port: EventPort, where: Expression, ports: Mapping[str, Port], scope: LibraryScope
) -> None:
    def resolve(name: Name) -> ValueType | None:
        return _on_events(scope, [port.type], name, 0, ports, instead)

    others = {name[0] for name in names_in(where) if len(name) > 1} & (ports.keys() - {port.name})

    def instead(name: Name) -> str:
        if not others:
            return _without_port(name)
        clause = _as_having(port, where, ports)
        hint = f"to compare events of two ports, write the clause `{clause}`"
        same = _same_attribute(where)
        return f"{hint}, or `by {same}` for a memory of each value" if same else hint

    check_predicate(where, resolve, scope.diagnostics)
    _refuse_derived_in_history(where, scope)


def _refuse_derived_in_history(predicate: Expression, scope: LibraryScope) -> None:
    """Report names of derived attributes that a term asks of stored publications."""
    for term in nodes_in(predicate):
        if not isinstance(term, After | Before | During | Related | Compared):
            continue
        asked = [each for each in nodes_in(term.filter) if isinstance(each, Name)]
        for name in [term.name, *asked] if isinstance(term, Compared) else asked:
            derived = scope.types.derived_anywhere(name.text)
            if derived is not None:
                scope.error(
                    "derived-in-history",
                    f"`{name.text}` is worked out, and a stored publication has data only",
                    name.span,
                    f"write out what it is worked out from: `{derived.value}`",
                )


def _same_attribute(where: Expression) -> str | None:
    """The attribute `x` of a predicate `a.x = b.x`."""
    match where:
        case Comparison(Name((_, *first)), (("=", Name((_, *second))),)) if first == second:
            return ".".join(first) or None
        case _:
            return None


def _without_port(name: Name) -> str:
    return f"write `{'.'.join(name.parts[1:])}`"


def _as_having(port: EventPort, where: Expression, ports: Mapping[str, Port]) -> str:
    """A predicate that also reads another port's event, as a `having` clause."""

    def said(x: Any) -> Any:
        match x:
            case Name(parts):
                return x if parts[0] in ports and len(parts) > 1 else Name((port.name, *parts))
            case tuple():
                return tuple(said(each) for each in x)
            case _ if is_dataclass(x) and not isinstance(x, type):
                changed = {
                    each.name: said(getattr(x, each.name)) for each in fields(x) if each.compare
                }
                return replace(x, **changed)
            case _:
                return x

    text = print_expression(said(where))
    return f"having {text}" if len(text) <= _LONGEST_SHOWN else "having ..."


def check_holds(part: Holds, ports: Mapping[str, Port], scope: LibraryScope) -> None:
    # A dictionary keeps each type once, in their order.
    types = list(dict.fromkeys(each.type for each in ports.values() if isinstance(each, EventPort)))

    def resolve(name: Name) -> ValueType | None:
        return _on_events(scope, types, name, 0, ports, _without_port)

    check_predicate(part.predicate, resolve, scope.diagnostics)
    _refuse_derived_in_history(part.predicate, scope)


def check_having(
    having: Expression, ports: Mapping[str, Port], scope: LibraryScope
) -> Mapping[str, Span]:
    """Check the clause `having`; the ports in it are returned, with the places of their names."""
    used: dict[str, Span] = {}

    def resolve(name: Name) -> ValueType | None:
        return _on_ports(scope, ports, name, used)

    def aggregate(call: Call) -> ValueType | None:
        return _aggregated(scope, ports, call, used)

    check_predicate(having, resolve, scope.diagnostics, aggregate)
    return used


class CheckedValue(NamedTuple):
    """The kind of a value, and the ports in it, with the places of their names."""

    kind: str | None
    ports: Mapping[str, Span]


def check_assigned_value(
    value: Expression,
    wanted: ValueType | None,
    ports: Mapping[str, Port],
    scope: LibraryScope,
) -> CheckedValue:
    """Check a value of a statement.

    If the type of the attribute is not known, only the names in the value are checked.
    """
    used: dict[str, Span] = {}

    def resolve(name: Name) -> ValueType | None:
        return _on_ports(scope, ports, name, used)

    def aggregate(call: Call) -> ValueType | None:
        return _aggregated(scope, ports, call, used)

    if wanted is None:
        kind = check_expression(value, resolve, scope.diagnostics, aggregate)
    else:
        kind = check_value(value, wanted, resolve, scope.diagnostics, aggregate)
    return CheckedValue(kind, used)


def _aggregated(
    scope: LibraryScope, ports: Mapping[str, Port], call: Call, used: dict[str, Span]
) -> ValueType | None:
    """The type of the argument of an aggregate: an attribute of a port, or for `count` a port."""
    word, counts = call.function.lower(), call.function == "COUNT"
    port, attribute = next(iter(ports), "a"), "Name"
    match call.arguments:
        case (Name((first,)) as name,) if counts:
            used.setdefault(first, name.span)
            if first not in ports:
                message = f"there is no port `{first}`"
                scope.error("unknown-port", message, name.span, scope.hint(first, ports))
            return None
        case (Name((_, _, *_)) as name,) if not counts:
            return _on_ports(scope, ports, name, used)
        case (Name((first, *rest)),):
            port = first if first in ports else port
            attribute = ".".join(rest) or (attribute if first in ports else first)
    asked = f"count({port})" if counts else f"{word}({port}.{attribute})"
    what = "a port" if counts else "an attribute of a port"
    hint = f"write `{asked}`"
    if len(call.arguments) > 1 and isinstance(call.arguments[0], Name):
        hint = f"it takes one: write `{word}({print_expression(call.arguments[0])})`"
    if call.arguments and not isinstance(call.arguments[0], Name):
        hint += (
            "; what is computed must be an attribute of the events, or of those of a rule before"
        )
    scope.error("bad-aggregate", f"`{word}` is asked of {what}", call.span, hint)
    return None


def _on_events(
    scope: LibraryScope,
    type_names: Sequence[str],
    name: Name,
    start: int,
    ports: Mapping[str, Port],
    instead: Instead,
) -> ValueType | None:
    """The type of a name, or of its parts from `start` on, on events."""
    first, *rest = name.parts[start:]
    span = scope.part_span(name, start)
    if not rest:
        quoted = f"{TAKEN_FOR_AN_EXTENSION}; a text stands in quotes: `'{first}'`"
        is_extension = start == 0 and EXTENSION_NAME.fullmatch(first)
        return attribute_type(scope, type_names, first, span, quoted if is_extension else None)
    # Only data has parts: a dotted name is never a CloudEvents attribute.
    if not all(each in scope.types for each in type_names):
        return None
    if start == 0 and first in ports:
        # A first part that is the name of a port means that port.
        _report_port_in_predicate(scope, type_names, name, instead)
        return None
    whole = [data_type(scope, each, ".".join(name.parts[start:])) for each in type_names]
    nested = [each for each in whole if each is not None and each.declared]
    if nested:
        return agreed(each.type for each in nested)
    known = [data_type(scope, each, first) for each in type_names]
    found = [each for each in known if each is not None]
    if not found:
        report_unknown(scope, type_names, first, span)
    elif all(each.type is not None for each in found):
        shown = next(each.type for each in found)
        scope.error(
            "attribute-without-parts",
            f"attribute `{first}` is a `{shown}` and has no part `{rest[0]}`",
            scope.part_span(name, start + 1),
            f"write `{'.'.join(name.parts[: start + 1])}`",
        )
    return None


def _report_port_in_predicate(
    scope: LibraryScope, type_names: Sequence[str], name: Name, instead: Instead
) -> None:
    first = name.parts[0]
    hint = instead(name)
    if any(data_type(scope, each, name.text) is not None for each in type_names):
        hint = f"to reach the data of that name, give the port `{first}` another name"
    scope.error(
        "port-in-predicate",
        f"`{first}` is a port, and a predicate asks one event, without naming its port",
        scope.part_span(name, 0),
        hint,
    )


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
        return _on_events(scope, [port.type], name, 1, ports, _without_port)
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
    if name.lower() in NOTHING and name not in ports:
        message = f"`{name}` is no value: what is null is missing"
        hint = "a value that cannot be had is null: ask `... IS NULL`, or leave the attribute out"
    elif name in ports:
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
        ]
        owner = next(iter(owners or ports))
        is_count = not owners and name.lower() == "count"
        hint = f"write `count({owner})`" if is_count else f"name the port: `{owner}.{name}`"
    scope.error("bare-name", message, span, hint)
