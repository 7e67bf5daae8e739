"""The terms of a filter that ask a history or an ontology, at any depth, and their concepts."""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.expressions.nesting import nodes_in
from ensue.lang.expressions.terms import Concept, ConceptBag
from ensue.lang.expressions.tree import ConceptTerm, Expression, TemporalTerm


def terms_in(expression: Expression) -> Iterator[TemporalTerm | ConceptTerm]:
    """The temporal and concept terms of a filter, also inside the filters of other terms."""
    return (each for each in nodes_in(expression) if isinstance(each, TemporalTerm | ConceptTerm))


def concepts_in(term: TemporalTerm | ConceptTerm) -> list[str]:
    """The concepts that a term names itself, as they were written."""
    match getattr(term, "concept", None):
        case Concept(text):
            return [text]
        case ConceptBag(_, concepts):
            return [each.text for each in concepts]
        case _:
            return []
