"""Labels, statements and cases: `b.case(b.label("l1") & ~b.label("l2"), b.push(c))`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ensue.errors import UsageError
from ensue.lang import syntax
from ensue.lang.building.built import (
    RESERVED_AFTER_PUSH,
    RESERVED_IN_CASE,
    Built,
    dotted,
    identifier,
)
from ensue.lang.building.filters import Port, TypeName, type_name
from ensue.lang.building.values import value
from ensue.lang.printer import print_case, print_labels, print_statement


class Labels(Built[syntax.LabelExpression]):
    """A condition over labels: `&`, `|` and `~`. A chain of one operator is flat."""

    def __init__(self, node: syntax.LabelExpression, *, grouped: bool = True) -> None:
        super().__init__(node)
        self._grouped = grouped

    def _text(self) -> str:
        return print_labels(self.node)

    def __and__(self, other: Labels) -> Labels:
        left, right = self.node, labels(other).node
        before: tuple[syntax.LabelExpression, ...] = (left,)
        if isinstance(left, syntax.LabelAnd) and not self._grouped:
            before = left.parts
        return Labels(syntax.LabelAnd((*before, right)), grouped=False)

    def __or__(self, other: Labels) -> Labels:
        left, right = self.node, labels(other).node
        before: tuple[syntax.LabelExpression, ...] = (left,)
        if isinstance(left, syntax.LabelOr) and not self._grouped:
            before = left.parts
        return Labels(syntax.LabelOr((*before, right)), grouped=False)

    def __invert__(self) -> Labels:
        return Labels(syntax.LabelNot(self.node))

    def __bool__(self) -> bool:
        raise UsageError("join labels by `&`, `|` and `~`, not by `and`, `or` and `not`")


class Statement(Built[syntax.Statement]):
    def _text(self) -> str:
        return print_statement(self.node)

    def with_(self, extensions: Mapping[str, object] | None = None, /, **more: object) -> Statement:
        """`push ... with { name = value, ... }`: extensions of what is pushed."""
        if isinstance(self.node, syntax.Change):
            raise UsageError(f"`with` stands behind a `push`, and not behind `{self}`")
        given = {**(extensions or {}), **more}
        added = tuple(
            syntax.Extension(identifier(name, "an extension"), value(each).node)
            for name, each in given.items()
        )
        return Statement(replace(self.node, extensions=(*self.node.extensions, *added)))


class Case(Built[syntax.Case]):
    def _text(self) -> str:
        return print_case(self.node)


def label(name: str) -> Labels:
    """Whether a label is active."""
    return Labels(syntax.LabelName(identifier(name, "a label", RESERVED_IN_CASE)))


def label_not(part: bool | str | Labels) -> Labels:
    return Labels(syntax.LabelNot(labels(part).node))


def label_and(*parts: bool | str | Labels) -> Labels:
    """`l1 & l2`: all labels are active. The group keeps its brackets."""
    nodes = tuple(labels(each).node for each in parts)
    return Labels(nodes[0] if len(nodes) == 1 else syntax.LabelAnd(_some(nodes)))


def label_or(*parts: bool | str | Labels) -> Labels:
    """`l1 | l2`: one label or more is active. The group keeps its brackets."""
    nodes = tuple(labels(each).node for each in parts)
    return Labels(nodes[0] if len(nodes) == 1 else syntax.LabelOr(_some(nodes)))


def _some(nodes: tuple[syntax.LabelExpression, ...]) -> tuple[syntax.LabelExpression, ...]:
    if not nodes:
        raise UsageError("at least one label must be given")
    return nodes


def labels(given: object) -> Labels:
    if given is True:
        return Labels(syntax.LabelTrue())
    if isinstance(given, str):
        return label(given)
    if isinstance(given, Labels):
        return given
    raise UsageError(f"`{given!r}` is neither a label nor `True`")


def case(condition: bool | str | Labels, *statements: Statement) -> Case:
    """`case condition: statements`. The condition is `True`, a label, or a condition of labels."""
    return Case(syntax.Case(labels(condition).node, statement_nodes(statements)))


def statement_nodes(statements: tuple[Statement, ...]) -> tuple[syntax.Statement, ...]:
    for each in statements:
        if not isinstance(each, Statement):
            raise UsageError(f"`{each!r}` is no statement")
    return tuple(each.node for each in statements)


def push_port(port: Port | str) -> Statement:
    """`push a`: send on the event that is bound to a port."""
    name = port.name if isinstance(port, Port) else port
    return Statement(syntax.PushPort(identifier(name, "a port", RESERVED_AFTER_PUSH)))


def push_new(
    type: TypeName,  # noqa: A002 - the word that the language uses
    attributes: Mapping[str, object] | None = None,
    /,
    **more: object,
) -> Statement:
    """`push new Type { name = value, ... }`. Keywords of Python are given in a mapping."""
    given = {**(attributes or {}), **more}
    assignments = tuple(
        syntax.Assignment(dotted(name, "an attribute"), value(each).node)
        for name, each in given.items()
    )
    return Statement(syntax.PushNew(type_name(type, "an event type"), assignments))


def abort(*labels: str) -> Statement:
    return Statement(syntax.Change("abort", _names(labels)))


def revive(*labels: str) -> Statement:
    return Statement(syntax.Change("revive", _names(labels)))


def toggle(*labels: str) -> Statement:
    return Statement(syntax.Change("toggle", _names(labels)))


def _names(names: tuple[str, ...]) -> tuple[syntax.LabelName, ...]:
    if not names:
        raise UsageError("at least one label must be given")
    return tuple(syntax.LabelName(identifier(each, "a label")) for each in names)
