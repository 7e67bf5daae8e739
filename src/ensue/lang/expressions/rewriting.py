"""Copies of trees in which some nodes are replaced.

`replaced` is for expressions over one event: terms that ask a history or an ontology stay as they
are, since they read no part of the event itself. `mapped` takes any tree, from a name to a library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Comparison,
    Expression,
    In,
    Like,
    Logic,
    Negate,
    Not,
)


def replaced(x: Expression, by: Mapping[Expression, Expression]) -> Expression:
    """The expression with each part that is a key of `by` replaced by its value."""
    if x in by:
        return by[x]
    match x:
        case Not(operand) | Negate(operand) | Like(operand):
            return replace(x, operand=replaced(operand, by))
        case Arithmetic(first, rest) | Comparison(first, rest):
            others = tuple((sign, replaced(each, by)) for sign, each in rest)
            return replace(x, first=replaced(first, by), rest=others)
        case Logic(operands):
            return replace(x, operands=tuple(replaced(each, by) for each in operands))
        case In(operand, options):
            others_in = tuple(replaced(each, by) for each in options)
            return replace(x, operand=replaced(operand, by), options=others_in)
        case Call(_, arguments):
            return replace(x, arguments=tuple(replaced(each, by) for each in arguments))
    return x


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with each node replaced by what `change` returns for it.

    Where `change` returns None, the node stays and its parts are visited.
    """
    changed = change(node)
    if changed is not None:
        return changed
    if isinstance(node, tuple):
        parts = tuple(mapped(each, change) for each in node)
        return parts if any(x is not y for x, y in zip(parts, node, strict=True)) else node
    if not is_dataclass(node) or isinstance(node, type):
        return node
    new = {}
    for each in fields(node):
        value = getattr(node, each.name)
        if each.compare and (isinstance(value, tuple) or is_dataclass(value)):
            inside = mapped(value, change)
            if inside is not value:
                new[each.name] = inside
    return replace(node, **new) if new else node
