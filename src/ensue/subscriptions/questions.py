"""Two filters as one question over their atoms: which outcomes can they have together?

An expression becomes a tree over numbered atoms. Outcomes are sets, as bits: true, false, in error.
`possible` tells which outcomes an expression can have when for each atom it is known which it can
have; it never leaves one out, and is exact once every atom has a single outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ensue.lang.expressions.evaluation import evaluate
from ensue.lang.expressions.scopes import Scope
from ensue.lang.expressions.tree import (
    Expression,
    Logic,
    Not,
)
from ensue.lang.matching.outcomes import constant_outcome, in_plain_terms, is_uncast, truth

TRUE, FALSE, ERROR = 1, 2, 4
ANYTHING = TRUE | FALSE | ERROR

Node = Any
"""A known outcome `(outcome,)`, the number of an atom, `("not", node)` or `(sign, left, right)`."""


@dataclass(frozen=True, slots=True)
class Atom:
    """`whole` where it is a filter by itself, whose value must be TRUE without a cast."""

    expression: Expression
    whole: bool = False

    def outcome(self, scope: Scope) -> int:
        outcome = evaluate(self.expression, scope)
        if self.whole:
            return TRUE if outcome.value is True and not outcome.errors else ERROR
        return {True: TRUE, False: FALSE, None: ERROR}[truth(outcome)]


@dataclass
class Atoms:
    numbers: dict[Atom, int] = field(default_factory=dict)

    @property
    def all(self) -> list[Atom]:
        return list(self.numbers)

    def number(self, atom: Atom) -> int:
        return self.numbers.setdefault(atom, len(self.numbers))


def node_of(predicate: Expression, atoms: Atoms, top: bool = True) -> Node:
    constant = constant_outcome(predicate)
    if constant is not None:
        if top:
            return (TRUE if constant.value is True and not constant.errors else ERROR,)
        return ({True: TRUE, False: FALSE, None: ERROR}[truth(constant)],)
    plain = in_plain_terms(predicate)
    if plain is not None:
        return node_of(plain, atoms, top)
    match predicate:
        case Not(operand):
            return ("not", node_of(operand, atoms, False))
        case Logic(operands, operators):
            nodes = [node_of(each, atoms, False) for each in operands]
            node = nodes[-1]
            for sign, left in zip(reversed(operators), reversed(nodes[:-1]), strict=True):
                node = (sign, left, node)
            return node
        case _:
            whole = top and is_uncast(predicate)
            return atoms.number(Atom(predicate, whole))


def possible(node: Node, known: Sequence[int]) -> int:
    """The outcomes that an expression can have."""
    # A chain of thousands of operands goes to the right, and is walked without recursion.
    chain: list[tuple[str, Node]] = []
    while not isinstance(node, int) and len(node) == 3:
        sign, left, node = node
        chain.append((sign, left))
    if isinstance(node, int):
        found = known[node]
    elif len(node) == 1:
        found = int(node[0])
    else:
        inner = possible(node[1], known)
        found = (inner & ERROR) | (FALSE if inner & TRUE else 0) | (TRUE if inner & FALSE else 0)
    for sign, left in reversed(chain):
        found = _joined(sign, possible(left, known), found)
    return found


def _joined(sign: str, first: int, second: int) -> int:
    """The outcomes of two operands together, of which the second may not be asked."""
    found = first & ERROR
    decided, goes_on = (FALSE, TRUE) if sign == "AND" else (TRUE, FALSE)
    if sign != "XOR":
        return found | (first & decided) | (second if first & goes_on else 0)
    if first & ~ERROR:
        found |= second & ERROR
        if (first & TRUE and second & FALSE) or (first & FALSE and second & TRUE):
            found |= TRUE
        if (first & TRUE and second & TRUE) or (first & FALSE and second & FALSE):
            found |= FALSE
    return found
