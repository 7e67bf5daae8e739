"""Trees of the language with other nodes in the places of some.

In come a tree and what takes the place of some of its nodes; out goes another tree. `replaced` is
for expressions over one event: terms that ask a history or an ontology stay as they are, since
nothing inside of them is of the event itself. `mapped` goes through any tree, from a name up to a
library.
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
    """The expression, with each part that is a key of `by` replaced by its value."""
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
    """The tree with every node for which `change` gives another in its place.

    Where `change` gives None, the node stays and what is inside of it is asked.
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
