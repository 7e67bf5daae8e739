"""The terms of a filter that ask a history or an ontology, at any depth, and their concepts."""

from __future__ import annotations

from collections.abc import Iterator

from ensue.lang.expressions.nesting import parts_of
from ensue.lang.expressions.terms import Concept, ConceptBag
from ensue.lang.expressions.tree import ConceptTerm, Expression, Literal, Name, TemporalTerm


def terms_in(expression: Expression) -> Iterator[TemporalTerm | ConceptTerm]:
    """The temporal and concept terms of a filter, also inside the filters of other terms."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Literal | Name):
            continue
        if isinstance(current, TemporalTerm | ConceptTerm):
            yield current
        waiting.extend(parts_of(current))


def concepts_in(term: TemporalTerm | ConceptTerm) -> list[str]:
    """The concepts that a term names itself, as they were written."""
    match getattr(term, "concept", None):
        case Concept(text):
            return [text]
        case ConceptBag(_, concepts):
            return [each.text for each in concepts]
        case _:
            return []
