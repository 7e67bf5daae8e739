"""Concept terms bound to an ontology, and bound terms as plain CESQL.

In comes a tree of the language (a predicate, a correlation, a library); out goes the tree with each
concept term in a `BoundTerm`, which has the ontology's test. A concept or property that the
ontology does not know is reported at its place. `plain` is for trees that are read without the
ontology: bound terms become sets of texts, as of that moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ensue.errors import OntologyError
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.rewriting import mapped
from ensue.lang.expressions.terms import TextSets, ValueTest
from ensue.lang.expressions.tree import (
    BoundTerm,
    ConceptTerm,
    Expression,
    Has,
    In,
    IsA,
    Literal,
    Logic,
    Name,
    Not,
    OntologyProperty,
    SameAs,
    Subsumes,
)

Tree = TypeVar("Tree")


class BindingOntology(Protocol):
    """An ontology to which terms can be bound."""

    def bound(self, term: ConceptTerm) -> ValueTest:
        """The test of a term. Raises `OntologyError` for names that the ontology does not know."""


def bound(tree: Tree, ontology: BindingOntology, diagnostics: Diagnostics) -> Tree:
    """The tree with its concept terms bound; those with an unknown name are reported."""

    def bind(node: Any) -> Any:
        if isinstance(node, BoundTerm):
            return node
        if not isinstance(node, IsA | Subsumes | SameAs | OntologyProperty):
            return None
        try:
            return BoundTerm(node, ontology.bound(node), node.span)
        except OntologyError as error:
            for problem in error.problems:
                diagnostics.error("unknown-concept", problem, node.span)
            return BoundTerm(node, _UnknownTest(), node.span)

    changed: Tree = mapped(tree, bind)
    return changed


class _UnknownTest:
    """The test of a term with unknown names, which has been reported and never runs."""

    def holds(self, value: Any) -> bool:  # noqa: ARG002
        return False

    def texts(self) -> TextSets:
        return TextSets((frozenset(),))


def plain(tree: Tree, is_text: Callable[[Name], bool]) -> Tree:
    """The tree without an ontology: each bound term is a test of the texts that pass it now.

    `is_text` tells whether the values of a name are single texts, so that `IN` is enough.
    """

    def replace_bound(node: Any) -> Any:
        return _plain(node, is_text(node.name)) if isinstance(node, BoundTerm) else None

    changed: Tree = mapped(tree, replace_bound)
    return changed


def _plain(node: BoundTerm, is_text: bool) -> Expression:
    sets, name = node.test.texts(), node.name
    if is_text:
        return In(name, _literals(sets.singly), span=node.span)
    tests: list[Expression] = [Has(name, "ANY", _literals(each)) for each in sets.needs]
    if sets.only is not None:
        tests.append(Has(name, "ONLY", _literals(sets.only)))
    if sets.never:
        tests.append(Not(Has(name, "ANY", _literals(sets.never))))
    return tests[0] if len(tests) == 1 else Logic(tuple(tests), ("AND",) * (len(tests) - 1))


def _literals(texts: frozenset[str]) -> tuple[Literal, ...]:
    # An empty set has no text in CESQL: this constant equals no text of an event.
    return tuple(map(Literal, sorted(texts or {_NO_CONCEPT})))


_NO_CONCEPT = "urn:ensue:no-concept"
