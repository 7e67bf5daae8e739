"""The types of extensions that `with` sets on what is pushed.

In come the correlations of a checked library and its types; out go copies in which each extension
has its type: a name that channels and gateways know has the type that they need, and any other has
that of its value. CloudEvents has four of them: text, boolean, a 32-bit integer, and a timestamp,
which an event carries as text. A value whose type only a run can tell is taken as text. A library
without `with` is returned as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ensue.events.expiry import EXPIRY
from ensue.events.types import TypeSystem, ValueType
from ensue.lang.checking.names import CONTEXT_ATTRIBUTES, OUTPUT_ATTRIBUTES, TIMESTAMP, agreed
from ensue.lang.derived.parts import statements_of
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions import Call, Name
from ensue.lang.expressions.checking.kinds import check_expression
from ensue.lang.expressions.derived_names import derived_name
from ensue.lang.expressions.rewriting import mapped
from ensue.lang.source import Source
from ensue.lang.syntax import Correlation, EventPort, Extension, PushNew, PushPort, TimerPort

INTEGER, TEXT, BOOLEAN = ValueType("long"), ValueType("string"), ValueType("boolean")
PRIORITY = "priority"
NAMED: Final[Mapping[str, ValueType]] = {
    PRIORITY: INTEGER,
    EXPIRY: TIMESTAMP,
    "subject": TEXT,
    "partitionkey": TEXT,
}
"""The types of extensions that have a meaning."""
_OF_KIND = {"boolean": BOOLEAN, "integer": INTEGER, "number": INTEGER, "timestamp": TIMESTAMP}


def extension_type(name: str, kind: str | None) -> ValueType:
    """The type of an extension whose value is of a kind; None where only a run can tell."""
    return NAMED.get(name) or _OF_KIND.get(kind or "", TEXT)


def extensions_of(correlation: Correlation) -> list[Extension]:
    """All extensions that a correlation sets."""
    return [
        each
        for statement in statements_of(correlation)
        if isinstance(statement, PushPort | PushNew)
        for each in statement.extensions
    ]


def with_extension_types(
    correlations: tuple[Correlation, ...], types: TypeSystem
) -> tuple[Correlation, ...]:
    return tuple(_in_rule(each, types) if extensions_of(each) else each for each in correlations)


def _in_rule(rule: Correlation, types: TypeSystem) -> Correlation:
    ports = {port.name: port for port in rule.ports}

    def resolve(name: Name) -> ValueType | None:
        port = ports.get(name.parts[0])
        if isinstance(port, TimerPort):
            return TIMESTAMP
        return None if port is None else _type_on(port, name.parts[1:], types)

    def of_aggregate(call: Call) -> ValueType | None:
        (argument,) = call.arguments
        is_name = isinstance(argument, Name) and len(argument.parts) > 1
        return resolve(argument) if is_name else None  # type: ignore[arg-type]

    def typed(node: Any) -> Any:
        if not isinstance(node, Extension):
            return None
        found = Diagnostics(Source.of(""))
        kind = check_expression(node.value, resolve, found, of_aggregate)
        type_ = extension_type(node.name, kind)
        is_open = type_ == TEXT and kind != "string"
        value = Call("STRING", (node.value,), node.value.span) if is_open else node.value
        return replace(node, value=value, type=type_)

    changed: Correlation = mapped(rule, typed)
    return changed


def _type_on(port: EventPort, parts: tuple[str, ...], types: TypeSystem) -> ValueType | None:
    """The type of a name on the events of a port, as the checks know it."""
    name = ".".join(parts)
    if name in CONTEXT_ATTRIBUTES:
        return CONTEXT_ATTRIBUTES[name]
    derived = derived_name(parts)
    own = [types.attributes(each).get(name) for each in types.subtypes(port.type)]
    declared = [each for each in own if each is not None]
    if derived is not None:
        declared += [each.type for each in derived.values.values()]
    if own[0] is not None:
        return own[0]
    if declared:
        return agreed(declared)
    known = {**CONTEXT_ATTRIBUTES, **OUTPUT_ATTRIBUTES}
    return known.get(name.lower())
