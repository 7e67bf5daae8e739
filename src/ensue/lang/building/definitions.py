"""Event types, correlations of both kinds, and the library that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, get_args

from ensue.errors import UsageError
from ensue.events.types import ValueType
from ensue.lang import syntax
from ensue.lang.building.built import (
    RESERVED_AFTER_LONG,
    RESERVED_AS_OUTPUT,
    Built,
    Length,
    dotted,
    duration,
    identifier,
    plain_text,
    refuse_depth,
)
from ensue.lang.building.ecl import Part, as_ecl
from ensue.lang.building.filters import (
    Filter,
    Port,
    Source,
    TypeName,
    as_filter,
    source_nodes,
    type_name,
)
from ensue.lang.building.transformers import Case, Statement, statement_nodes
from ensue.lang.building.values import Value, predicate
from ensue.lang.expressions import Expression, Name
from ensue.lang.expressions import Literal as LiteralExpression
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.printer import print_definition, print_key, print_library


class EventType(Built[syntax.EventTypeDeclaration]):
    def _text(self) -> str:
        return print_definition(self.node)

    @property
    def name(self) -> str:
        return self.node.name


class Correlation(Built[syntax.Correlation]):
    def _text(self) -> str:
        return print_definition(self.node)

    @property
    def name(self) -> str:
        return self.node.name


class Import(Built[syntax.Import]):
    def _text(self) -> str:
        return print_definition(self.node)


class Parameter(Built[syntax.Parameter]):
    """A parameter. Its name stands for it where a constant, a duration or a count may stand."""

    def _text(self) -> str:
        return print_definition(self.node)

    @property
    def name(self) -> str:
        return self.node.name


class Use(Built[syntax.Use]):
    def _text(self) -> str:
        return print_definition(self.node)

    @property
    def name(self) -> str:
        return self.node.name


AnyDefinition = EventType | Correlation | Import | Parameter | Use


class Key(Built[syntax.Key]):
    def _text(self) -> str:
        return print_key(self.node)


class Library(Built[syntax.LibraryTree]):
    """Definitions in their order. `str(library)` is the text for `ensue.parse`."""

    def _text(self) -> str:
        return print_library(self.node)

    @property
    def tree(self) -> syntax.LibraryTree:
        return self.node

    def __repr__(self) -> str:
        return f"<Library of {len(self.node.definitions)} definitions>"


Constant = bool | int | float | str | datetime
Keys = str | Key | Sequence[str | Key]


def sequence(element: ValueType) -> ValueType:
    """`sequence<element>`."""
    return ValueType("sequence", element)


@dataclass(frozen=True, slots=True)
class Derived:
    """The type of an attribute that is worked out, and its value."""

    type: ValueType
    value: Expression


def derived(kind: ValueType, value: str | Value) -> Derived:
    """`attribute kind name = value;`: an attribute that is worked out from others."""
    if not isinstance(kind, ValueType):
        raise UsageError(f"`{kind!r}` is no type of an attribute; `b.long` would be one")
    return Derived(kind, predicate(value).node)


def eventtype(
    name: str,
    attributes: Mapping[str, ValueType | Derived] | None = None,
    /,
    *,
    extends: TypeName | None = None,
    wire: str | None = None,
    **more: ValueType | Derived,
) -> EventType:
    """`eventtype name = "wire" : extends { ... }`.

    A name that is a keyword of Python, or has dots, is given in a mapping.
    """
    declared = []
    for attribute, given in {**(attributes or {}), **more}.items():
        kind, worked_out = given, None
        if isinstance(given, Derived):
            kind, worked_out = given.type, given.value
        if not isinstance(kind, ValueType):
            raise UsageError(f"`{kind!r}` is no type of an attribute; `b.long` would be one")
        # `attribute long long` would be read as one type.
        reserved = RESERVED_AFTER_LONG if kind.name in {"long", "unsigned long"} else ()
        place = dotted(attribute, "an attribute", reserved)
        declared.append(syntax.AttributeDeclaration(place, kind, worked_out))
    return EventType(
        syntax.EventTypeDeclaration(
            identifier(name, "an event type"),
            None if extends is None else type_name(extends, "an event type"),
            tuple(declared),
            None if wire is None else plain_text(wire, "the name on the wire"),
        )
    )


def key(*attributes: Value) -> Key:
    """`a.x = b.y`: a key with another name on each port, as `key(a["x"], b["y"])`."""
    parts = []
    for each in attributes:
        if not isinstance(each.node, Name):
            raise UsageError(f"`{each!r}` is no attribute of a port, such as `a['x']`")
        port, *inner = each.node.parts
        if not inner:
            raise UsageError(f"the key `{each}` must be a port and an attribute of it")
        parts.append((port, ".".join(inner)))
    if not parts:
        raise UsageError("a key needs at least one attribute")
    return Key(syntax.PortKeys(tuple(parts)))


def correlation(
    output: TypeName,
    name: str,
    *,
    ports: Sequence[Port],
    when: Filter | Port | Sequence[Filter | Port],
    cases: Sequence[Case] = (),
    initially: Sequence[Statement] = (),
    within: Length | None = None,
    by: Keys = (),
    bind: Literal["first", "last", "latest"] | None = None,
    keep: Literal["none", "last", "all"] | None = None,
    unless: Port | str | Sequence[Port | str] = (),
    having: str | Value | None = None,
    role: syntax.Role | None = None,
) -> Correlation:
    """A correlation with a filter and a transformer. Several filters in `when` are branches.

    What a correlation of the role `internal` puts out stays in the library.
    """
    branches = when if isinstance(when, Sequence) else (when,)
    if not branches:
        raise UsageError(f"the correlation `{name}` needs a filter")
    for each in cases:
        if not isinstance(each, Case):
            raise UsageError(f"`{each!r}` is no case")
    return _checked(
        syntax.FilterCorrelation(
            type_name(output, "the output type", RESERVED_AS_OUTPUT),
            identifier(name, "a correlation"),
            _ports(name, ports),
            tuple(as_filter(each).node for each in branches),
            _relating(_clauses(within, by, bind), keep, unless, having),
            statement_nodes(tuple(initially)),
            tuple(each.node for each in cases),
            _role(role),
        )
    )


def ecl(
    output: TypeName,
    name: str,
    *,
    ports: Sequence[Port],
    body: Part,
    within: Length | None = None,
    by: Keys = (),
    bind: Literal["first", "last"] | None = None,
    role: syntax.Role | None = None,
) -> Correlation:
    """A correlation written as an ECL expression."""
    return _checked(
        syntax.EclCorrelation(
            type_name(output, "the output type", RESERVED_AS_OUTPUT),
            identifier(name, "a correlation"),
            _ports(name, ports),
            as_ecl(body).node,
            _clauses(within, by, bind),
            _role(role),
        )
    )


def import_(path: str) -> Import:
    """`import "path";`"""
    return Import(syntax.Import(plain_text(path, "the path of an import")))


def parameter(
    name: str,
    value: Constant | timedelta,
    type: ValueType | None = None,  # noqa: A002
) -> Parameter:
    """`parameter type name = value;`. Without a type it is a duration."""
    if not (type is None or isinstance(type, ValueType)):
        raise UsageError(f"`{type!r}` is no type of a parameter; `b.long` would be one")
    declared = syntax.Parameter(
        type, identifier(name, "a parameter"), syntax.Duration(1), syntax.NOWHERE
    )
    return Parameter(replace(declared, value=_constant(value, is_duration=type is None)))


def use(
    rule: str | Correlation,
    name: str,
    *,
    sources: Mapping[str, Source | Sequence[Source]] | None = None,
    values: Mapping[str, Constant | timedelta] | None = None,
    role: Literal["internal"] | None = None,
) -> Use:
    """`use rule as name (port from source, ...) with { parameter = value, ... };`.

    A value is a duration if it is a `timedelta`; a text is a constant.
    """
    if role not in {None, "internal"}:
        raise UsageError(f"the role of a use is `internal`, and not `{role}`")
    return Use(
        syntax.Use(
            rule.name if isinstance(rule, Correlation) else identifier(rule, "a rule"),
            identifier(name, "a use"),
            tuple(
                syntax.PortWiring(identifier(port, "a port"), source_nodes(given))
                for port, given in (sources or {}).items()
            ),
            tuple(
                syntax.ParameterSetting(
                    identifier(each, "a parameter"),
                    _constant(value, is_duration=isinstance(value, timedelta)),
                )
                for each, value in (values or {}).items()
            ),
            role,
        )
    )


def _constant(value: object, *, is_duration: bool) -> syntax.ParameterValue:
    if is_duration:
        if not isinstance(value, str | timedelta):
            raise UsageError(f"`{value!r}` is no duration: write `10 s`, or give a timedelta")
        return duration(value)
    if not isinstance(value, bool | int | float | str | datetime):
        raise UsageError(f"`{value!r}` is no constant")
    if isinstance(value, str):
        plain_text(value, "the value of a parameter")
    return LiteralExpression(value)


def library(*definitions: AnyDefinition) -> Library:
    for each in definitions:
        if not isinstance(each, AnyDefinition):
            raise UsageError(f"`{each!r}` is no definition of a library")
    return Library(syntax.LibraryTree(tuple(each.node for each in definitions)))


def _role(role: syntax.Role | None) -> syntax.Role | None:
    if role not in {None, *get_args(syntax.Role)}:
        allowed = " or ".join(f"`{each}`" for each in get_args(syntax.Role))
        raise UsageError(f"the role of a correlation is {allowed}, and not `{role}`")
    return role


def _checked(node: syntax.Correlation) -> Correlation:
    refuse_depth(node)
    return Correlation(node)


def _ports(name: str, ports: Sequence[Port]) -> tuple[syntax.Port, ...]:
    if not 1 <= len(ports) <= DEFAULT_LIMITS.ports:
        raise UsageError(
            f"the correlation `{name}` has {len(ports)} ports, and must have from 1 to "
            f"{DEFAULT_LIMITS.ports:,}"
        )
    for each in ports:
        if not isinstance(each, Port):
            raise UsageError(f"`{each!r}` is no port")
    return tuple(each.node for each in ports)


def _relating(
    clauses: syntax.Clauses,
    keep: Literal["none", "last", "all"] | None,
    unless: Port | str | Sequence[Port | str],
    having: str | Value | None,
) -> syntax.Clauses:
    if keep not in {None, "none", "last", "all"}:
        raise UsageError(f"`keep` is `none`, `last` or `all`, and not `{keep}`")
    ports = (unless,) if isinstance(unless, str | Port) else unless
    names = [each.name if isinstance(each, Port) else each for each in ports]
    return replace(
        clauses,
        keep=keep,
        unless=tuple(syntax.PortRef(identifier(each, "a port")) for each in names),
        having=None if having is None else predicate(having).node,
    )


def _clauses(
    within: Length | None, by: Keys, bind: Literal["first", "last", "latest"] | None
) -> syntax.Clauses:
    if bind not in {None, "first", "last", "latest"}:
        raise UsageError(f"`bind` is `first`, `last` or `latest`, and not `{bind}`")
    given = (by,) if isinstance(by, str | Key) else by
    return syntax.Clauses(
        None if within is None else duration(within),
        tuple(_key(each) for each in given),
        bind,
    )


def _key(given: str | Key) -> syntax.Key:
    return given.node if isinstance(given, Key) else syntax.CommonKey(dotted(given, "a key"))
