"""Filters made ready to be asked about many publications, and what is remembered of the answers.

A filter without temporal terms says the same of a stored publication until that is changed, so each
answer is kept, by the publication's number. The answers of a temporal filter hold for one version
of the store. How many answers are kept is bounded; losing them costs time and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final

from ensue.history.narrowing import Clauses, narrowed
from ensue.lang.expressions.terms import Concept, ConceptBag
from ensue.lang.expressions.tree import (
    After,
    Arithmetic,
    Before,
    Call,
    Compared,
    Comparison,
    During,
    Exists,
    Expression,
    Has,
    In,
    IsA,
    Like,
    Literal,
    Logic,
    Name,
    Negate,
    Not,
    OntologyProperty,
    Related,
    SameAs,
    Subsumes,
)
from ensue.lang.source import Span

TEMPORAL: Final = (After, Before, During, Compared, Related)
CONCEPTS: Final = (IsA, Subsumes, SameAs, OntologyProperty)
_KNOWN: Final = frozenset(
    (
        *(*TEMPORAL, *CONCEPTS, Concept, ConceptBag, Has, Span),
        *(Arithmetic, Call, Comparison, Exists, In, Like, Literal, Logic, Name, Negate, Not),
    )
)
MOST_ANSWERS: Final = 1_000_000
"""Answers kept of all filters together."""
MOST_FILTERS: Final = 10_000


def asks_history(tree: Any) -> bool:
    """Whether temporal terms stand somewhere in a tree of the language."""
    return any(isinstance(each, TEMPORAL) for each in nodes_of(tree))


@dataclass(eq=False, slots=True)
class Prepared:
    """One filter. `cheap` are operands of its AND that ask no history: they are asked first."""

    expression: Expression
    is_temporal: bool
    asks_concepts: bool
    is_known: bool
    clauses: Clauses
    cheap: tuple[Expression, ...] = ()
    answers: dict[tuple[int, int, bool], bool] = field(default_factory=dict)


class Filters:
    """Every filter that was asked lately, each prepared once."""

    def __init__(self) -> None:
        self._by_meaning: dict[Expression, Prepared] = {}
        # A tree is hashed once; from then on the object itself finds it, and is kept alive by it.
        self._by_object: dict[int, tuple[Expression, Prepared]] = {}
        self._answers = 0
        self._revisions: dict[int, int] = {}
        self._of_this_version: list[Prepared] = []

    def of(self, expression: Expression) -> Prepared:
        known = self._by_object.get(id(expression))
        if known is not None and known[0] is expression:
            return known[1]
        if len(self._by_object) >= MOST_FILTERS:
            self._by_object.clear()
            self._by_meaning.clear()
            self._of_this_version.clear()
            self._revisions.clear()
            self._answers = 0
        prepared = self._by_meaning.get(expression)
        if prepared is None:
            prepared = self._by_meaning[expression] = _prepare(expression)
        self._by_object[id(expression)] = expression, prepared
        return prepared

    def answer(self, prepared: Prepared, seq: int, possibly: bool) -> bool | None:
        """What is remembered of a filter and a publication."""
        return prepared.answers.get((seq, self._revisions.get(seq, 0), possibly))

    def keep(self, prepared: Prepared, seq: int, possibly: bool, answer: bool) -> None:
        if not prepared.is_known:
            return
        if self._answers >= MOST_ANSWERS:
            for each in self._by_meaning.values():
                each.answers.clear()
            self._answers = 0
        if prepared.is_temporal and not prepared.answers:
            self._of_this_version.append(prepared)
        prepared.answers[seq, self._revisions.get(seq, 0), possibly] = answer
        self._answers += 1

    def revise(self, seqs: Iterator[int]) -> None:
        """Publications have changed: what is remembered of them is of no use any more."""
        if len(self._revisions) >= MOST_ANSWERS:
            for each in self._by_meaning.values():
                each.answers.clear()
            self._revisions.clear()
            self._answers = 0
        for seq in seqs:
            self._revisions[seq] = self._revisions.get(seq, 0) + 1

    def forget_temporal(self) -> None:
        """The store has changed."""
        for each in self._of_this_version:
            each.answers.clear()
        self._of_this_version.clear()

    def forget_concepts(self) -> None:
        """An ontology has changed."""
        for each in self._by_meaning.values():
            if each.asks_concepts:
                each.answers.clear()


def _prepare(expression: Expression) -> Prepared:
    nodes = list(nodes_of(expression))
    is_temporal = any(isinstance(each, TEMPORAL) for each in nodes)
    asks_concepts = any(
        isinstance(each, CONCEPTS) or (isinstance(each, Compared) and each.operator[0].isalpha())
        for each in nodes
    )
    cheap: tuple[Expression, ...] = ()
    # Every operand of a chain of ANDs must hold, so operands that cost nothing may come first.
    if is_temporal and isinstance(expression, Logic) and set(expression.operators) == {"AND"}:
        cheap = tuple(
            each
            for each in expression.operands
            if not any(isinstance(node, TEMPORAL) for node in nodes_of(each))
        )
    # A node of another room may ask something that changes: its answers are not remembered.
    is_known = all(type(each) in _KNOWN for each in nodes)
    return Prepared(expression, is_temporal, asks_concepts, is_known, narrowed(expression), cheap)


def nodes_of(expression: Any) -> Iterator[Any]:
    """Every node of a tree, the filters inside of its terms included."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
        elif is_dataclass(node):
            yield node
            waiting.extend(getattr(node, each.name) for each in fields(node))
