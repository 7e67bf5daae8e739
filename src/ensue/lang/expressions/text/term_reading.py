"""From the parser's reductions to the terms of histories, ontologies and bags.

`TermReading` has one method for each rule under `term` in the grammar, beside those of
`ExpressionReading`. A reference that is neither `start` nor `end`, a count of zero, a duration out
of range and an operator that cannot be used are refused here. The checker of a library, or an index
of subscriptions, checks whether there is a history or an ontology to ask.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from ensue.lang.durations import DURATION_RANGE, exact_microseconds
from ensue.lang.expressions import tree
from ensue.lang.expressions.terms import (
    REFERENCES,
    RELATIONS,
    Concept,
    ConceptBag,
    Quantifier,
    Reference,
)
from ensue.lang.expressions.text.reading import (
    Child,
    ExpressionReading,
    UnreadableError,
    nodes_in,
    signs_in,
    span_over,
    unquoted,
)
from ensue.lang.expressions.tree import (
    After,
    Before,
    Compared,
    During,
    Has,
    IsA,
    OntologyProperty,
    Related,
    SameAs,
    Subsumes,
)
from ensue.lang.source import Span

LARGEST_COUNT = 1_000_000_000
_SOME_LIMIT = 1_000_000
_MOST_DIGITS = 20
_PROPERTY = re.compile(r"<\s*(\S+?)\s*>")
_TESTS: dict[str, type[IsA | Subsumes | SameAs]] = {
    "IS_A": IsA,
    "SUBSUMES": Subsumes,
    "SAME_AS": SameAs,
}


class TermReading(ExpressionReading):
    """All expression rules. A subclass may report a refused text and go on."""

    def refuse(self, error: UnreadableError) -> None:
        """Called for a text that no tree can hold; if it returns, a stand-in takes its place."""
        raise error

    def call(self, children: Sequence[Child]) -> tree.Expression:
        called = super().call(children)
        assert isinstance(called, tree.Call)
        if called.function in RELATIONS and len(called.arguments) == 1:
            return Related(called.function, called.arguments[0], None, called.span)
        return called

    def passed(self, children: Sequence[Child]) -> tree.Expression:
        reference, words = self._reference(children), _by_type(children)
        kind = After if "AFTER" in words else Before
        limit = self._limit(words["DURATION"]) if "DURATION" in words else None
        times = self._times(words["INTEGER"]) if "INTEGER" in words else 1
        parameter = None
        if "WINDOW_NAME" in words:
            limit = _SOME_LIMIT
            parameter = self.parameter_name(words["WINDOW_NAME"], "a window of time")
        inner, span = nodes_in(children)[1], span_over(children)
        return kind(reference, limit, inner, times, span, parameter)

    def during(self, children: Sequence[Child]) -> tree.Expression:
        reference, words = self._reference(children), _by_type(children)
        times = self._times(words["INTEGER"]) if "INTEGER" in words else 1
        return During(reference, nodes_in(children)[1], times, span_over(children))

    def related(self, children: Sequence[Child]) -> tree.Expression:
        relation = _by_type(children)["RELATION"].upper()
        reference = self._reference(children)
        return Related(relation, nodes_in(children)[1], reference, span_over(children))

    def compared(self, children: Sequence[Child]) -> tree.Expression:
        name, inner = nodes_in(children)
        words = _by_type(children)
        limit = self._times(words["INTEGER"]) if "INTEGER" in words else None
        assert isinstance(name, tree.Name)
        return Compared(name, _operator(words), limit, inner, span_over(children))

    def concept_test(self, children: Sequence[Child]) -> tree.Expression:
        name, concept = cast(list[Any], nodes_in(children))
        return _TESTS[_operator(_by_type(children))](name, concept, span_over(children))

    def ontology_property(self, children: Sequence[Child]) -> tree.Expression:
        name, concept = cast(list[Any], nodes_in(children))
        words = _by_type(children)
        found = _PROPERTY.search(words["ONTPROP"])
        assert found is not None, "the terminal has the brackets"
        operator, span = _operator(words), span_over(children)
        if isinstance(concept, Concept) and operator not in ("=", "!=", *_TESTS):
            self.refuse(
                UnreadableError(
                    "concept-without-order",
                    f"`{operator}` compares values, and `{concept.text}` is a concept",
                    span,
                    "concepts are compared by `=`, `!=`, `IS_A`, `SUBSUMES` and `SAME_AS`; "
                    "a text stands in quotes",
                )
            )
            operator = "="
        return OntologyProperty(found[1], name, operator, concept, span)

    def has(self, children: Sequence[Child]) -> tree.Expression:
        name, *options = cast(list[Any], nodes_in(children))
        quantifier = cast(Quantifier, _by_type(children)["QUANTIFIER"].upper())
        return Has(name, quantifier, tuple(options), span_over(children))

    def concept_name(self, children: Sequence[Child]) -> Concept:
        return Concept(str(signs_in(children)[0]), span_over(children))

    def concept_iri(self, children: Sequence[Child]) -> Concept:
        return Concept(unquoted(signs_in(children)[0]), span_over(children))

    def concept_bag(self, children: Sequence[Child]) -> ConceptBag:
        quantifier = _by_type(children).get("QUANTIFIER", "ANY").upper()
        concepts = cast(list[Any], nodes_in(children))
        return ConceptBag(cast(Quantifier, quantifier), tuple(concepts), span_over(children))

    def constant(self, children: Sequence[Child]) -> tree.Expression:
        *_, sign = signs_in(children)
        span = span_over(children)
        match sign.type:
            case "STRING":
                read = self.string([sign])
            case "TIMESTAMP":
                read = self.timestamp([sign])
            case "INTEGER":
                read = self.integer([sign])
            case "REAL":
                read = self.real([sign])
            case _:
                return tree.Literal(sign.type == "TRUE", span)
        assert isinstance(read, tree.Literal)
        negative = "_MINUS" in _by_type(children)
        return tree.Literal(-read.value if negative else read.value, span)  # type: ignore[operator]

    def _reference(self, children: Sequence[Child]) -> Reference:
        name = nodes_in(children)[0]
        assert isinstance(name, tree.Name)
        if name.text.lower() not in REFERENCES:
            self.refuse(
                UnreadableError(
                    "no-such-reference",
                    f"`{name.text}` is no point of an event's interval",
                    name.span,
                    "write `start` or `end`",
                )
            )
            return "start"
        return cast(Reference, name.text.lower())

    def _limit(self, token: Any) -> int:
        try:
            return exact_microseconds(str(token))
        except ValueError as error:
            place = span_over([token])
            self.refuse(UnreadableError("bad-duration", str(error), place, DURATION_RANGE))
            return _SOME_LIMIT

    def _times(self, token: Any) -> int:
        digits = token.lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS or not 1 <= int(digits) <= LARGEST_COUNT:
            place: Span = span_over([token])
            hint = f"a count is from 1 to {LARGEST_COUNT:,}"
            self.refuse(UnreadableError("bad-count", f"`{token[:20]}` is no count", place, hint))
            return 1
        return int(digits)


def _by_type(children: Sequence[Child]) -> dict[str, Any]:
    return {each.type: each for each in signs_in(children)}


def _operator(words: dict[str, Any]) -> str:
    written = str(words.get("CONCEPT_TEST") or words["COMPARE"]).upper()
    return "!=" if written == "<>" else written
