"""Ports and filters: `(bad * 5) >> good` is `bad{5} ; good`.

`+` means both, `|` either, `>>` one after the other, `* n` repeats, `.label(name)` sets a label.
Their precedence in Python is that of the language. A chain of one operator is flat; `b.both`,
`b.either` and `b.then` make a group, as brackets do in text. A `b.timeout` may only follow `>>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ensue.errors import UsageError
from ensue.lang import syntax
from ensue.lang.building.built import (
    RESERVED_AS_EVENT_PORT,
    RESERVED_AS_PORT_TYPE,
    Built,
    Length,
    count,
    duration,
    identifier,
    named_parameter,
    plain_text,
)
from ensue.lang.building.values import Value, attr, predicate
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.printer import print_filter, print_port, print_source
from ensue.lang.syntax import EventTypeDeclaration

_Chain = syntax.Both | syntax.Either | syntax.Then
TypeName = str | Built[EventTypeDeclaration]
Clock = Built[syntax.Ecl]
"""A `timeout`, which is also an ECL expression."""


class SourceName(Built[syntax.PortSource]):
    """What stands after `from` and is no text: the name of a correlation, or `outside`."""

    def _text(self) -> str:
        return print_source(self.node)


Source = str | SourceName | Built[syntax.Correlation] | Built[syntax.Use]


class Filter(Built[syntax.Filter]):
    """A filter, or a part of one."""

    def __init__(self, node: syntax.Filter, *, grouped: bool = True) -> None:
        super().__init__(node)
        self._grouped = grouped

    def _text(self) -> str:
        return print_filter(self.node)

    def __add__(self, other: Filter | Port) -> Filter:
        return _chain(syntax.Both, self, other)

    def __or__(self, other: Filter | Port) -> Filter:
        return _chain(syntax.Either, self, other)

    def __rshift__(self, other: Filter | Port | Clock) -> Filter:
        return _chain(syntax.Then, self, other)

    def __mul__(self, times: int | Built[syntax.Parameter]) -> Filter:
        name = named_parameter(times)
        if name is not None:
            return Filter(syntax.Times(self.node, 1, syntax.NOWHERE, name))
        most = DEFAULT_LIMITS.repetition
        return Filter(syntax.Times(self.node, count(times, "the number of repetitions", most)))

    def label(self, name: str) -> Filter:
        return Filter(syntax.Labelled(identifier(name, "a label"), self.node))


class Port(Built[syntax.Port]):
    """A port of a correlation. `port["Name"]` reads an attribute of its event in a transformer."""

    def _text(self) -> str:
        return print_port(self.node)

    @property
    def name(self) -> str:
        return self.node.name

    def __getitem__(self, attribute: str) -> Value:
        return attr(f"{self.name}.{attribute}")

    def __add__(self, other: Filter | Port) -> Filter:
        return as_filter(self) + other

    def __or__(self, other: Filter | Port) -> Filter:
        return as_filter(self) | other

    def __rshift__(self, other: Filter | Port | Clock) -> Filter:
        return as_filter(self) >> other

    def __mul__(self, times: int | Built[syntax.Parameter]) -> Filter:
        return as_filter(self) * times

    def label(self, name: str) -> Filter:
        return as_filter(self).label(name)


def port(
    type: TypeName,  # noqa: A002 - the word that the language uses
    name: str,
    *,
    source: Source | Sequence[Source] | None = None,
    where: str | bool | Value | None = None,
) -> Port:
    """`Type name from source, ... where predicate`.

    A source is a text, a correlation (or its name, as `rule("Three")`), or `outside`.
    """
    return Port(
        syntax.EventPort(
            type_name(type, "the event type of a port", RESERVED_AS_PORT_TYPE),
            identifier(name, "a port", RESERVED_AS_EVENT_PORT),
            () if source is None else source_nodes(source),
            None if where is None else predicate(where).node,
        )
    )


def rule(name: str) -> SourceName:
    """A correlation of the library as the source of a port: `from Name`."""
    return SourceName(syntax.RuleSource(identifier(name, "a correlation", {syntax.OUTSIDE})))


outside: Final = SourceName(syntax.OutsideSource())
"""`from outside`: all events from outside."""


def source_nodes(given: Source | Sequence[Source]) -> tuple[syntax.PortSource, ...]:
    """One source or several."""
    return tuple(map(_source, (given,) if isinstance(given, str | Built) else given))


def _source(given: object) -> syntax.PortSource:
    if isinstance(given, SourceName):
        return given.node
    if isinstance(given, Built) and isinstance(
        given.node, syntax.FilterCorrelation | syntax.EclCorrelation | syntax.Use
    ):
        return syntax.RuleSource(given.node.name)
    return syntax.TextSource(plain_text(given, "the source of a port"))


def every(period: Length, name: str) -> Port:
    """An interval timer."""
    return Port(syntax.TimerPort("every", duration(period), identifier(name, "a port")))


def deadline(period: Length, name: str) -> Port:
    """A watchdog timer."""
    return Port(syntax.TimerPort("deadline", duration(period), identifier(name, "a port")))


def both(*parts: Filter | Port) -> Filter:
    """`a + b`: every part matches, in any order."""
    return _group(syntax.Both, parts)


def either(*parts: Filter | Port) -> Filter:
    """`a | b`: at least one part matches."""
    return _group(syntax.Either, parts)


def then(*parts: Filter | Port | Clock) -> Filter:
    """`a ; b`: one part after the other; all but the first may be a `timeout`."""
    return _group(syntax.Then, parts)


def as_filter(given: object) -> Filter:
    if isinstance(given, Port):
        return Filter(syntax.PortRef(given.name))
    if isinstance(given, Filter):
        return given
    if isinstance(given, Built) and isinstance(given.node, syntax.Timeout):
        raise UsageError(f"`{given}` counts from what comes before it: write `x >> {given}`")
    raise UsageError(f"`{given!r}` is neither a port nor a filter")


def _part(given: object) -> syntax.Filter:
    """A part right of a `;`: a filter, or a timeout that counts from the part to its left."""
    if isinstance(given, Built) and isinstance(given.node, syntax.Timeout):
        return given.node
    return as_filter(given).node


def type_name(given: object, what: str, reserved: frozenset[str] = frozenset()) -> str:
    """The name of an event type, given as text or as a built type."""
    if isinstance(given, Built) and isinstance(given.node, EventTypeDeclaration):
        given = given.node.name
    return identifier(given, what, reserved)


def _group(kind: type[_Chain], parts: tuple[Filter | Port | Clock, ...]) -> Filter:
    if not parts:
        raise UsageError("a group needs at least one part")
    first, *others = parts
    rest = map(_part, others) if kind is syntax.Then else (as_filter(each).node for each in others)
    nodes = (as_filter(first).node, *rest)
    return Filter(nodes[0] if len(nodes) == 1 else kind(nodes))


def _chain(kind: type[_Chain], left: Filter, right: Filter | Port | Clock) -> Filter:
    last = _part(right) if kind is syntax.Then else as_filter(right).node
    if isinstance(left.node, kind) and not left._grouped:
        return Filter(kind((*left.node.parts, last)), grouped=False)
    return Filter(kind((left.node, last)), grouped=False)
