"""The text of terms that ask a history, an ontology or a bag.

In come a term and the printer of expressions, for the filters inside the term; out goes text that
is read as the same term. Keywords are in upper case, references in lower case. A concept that is no
name, with or without a prefix, is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ensue.lang.durations import print_duration
from ensue.lang.expressions import tree
from ensue.lang.expressions.terms import Concept, ConceptBag
from ensue.lang.expressions.tree import (
    After,
    Before,
    BoundTerm,
    Compared,
    During,
    Has,
    IsA,
    OntologyProperty,
    Related,
    SameAs,
    Subsumes,
    Term,
)
from ensue.lang.syntax import Duration

_BARE = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*:)?[A-Za-z_][A-Za-z0-9_-]*")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def print_term(
    term: Term,
    inner: Callable[[tree.Expression], str],
    constant: Callable[[tree.Literal], str],
    quote: Callable[[str], str],
) -> str:
    """The text of a term; `inner`, `constant` and `quote` print its parts."""
    match term:
        case After() | Before():
            word = "AFTER" if isinstance(term, After) else "BEFORE"
            return f"{term.reference} {word}{_within(term)} ({inner(term.filter)})"
        case During(reference, filtered, times):
            count = f"({times} TIMES) " if times != 1 else ""
            return f"{reference} DURING {count}({inner(filtered)})"
        case Compared(name, operator, limit, filtered):
            latest = "" if limit is None else f", {limit}"
            return f"{name.text} FILTER({operator}{latest}) ({inner(filtered)})"
        case Related(relation, filtered, reference):
            before = "" if reference is None else f"{reference} "
            return f"{before}{relation} ({inner(filtered)})"
        case BoundTerm(bound):
            return print_term(bound, inner, constant, quote)
        case IsA(name, concept):
            return f"{name.text} IS_A {_concepts(concept, quote)}"
        case Subsumes(name, concept):
            return f"{name.text} SUBSUMES {_concepts(concept, quote)}"
        case SameAs(name, concept):
            return f"{name.text} SAME_AS {_concepts(concept, quote)}"
        case OntologyProperty(prop, name, operator, asked):
            shown = (
                _signed(asked, constant)
                if isinstance(asked, tree.Literal)
                else _concepts(asked, quote)
            )
            return f"ONTPROP<{prop}>({name.text}) {operator} {shown}"
        case Has(name, quantifier, options):
            listed = ", ".join(_signed(each, constant) for each in options)
            return f"{name.text} HAS {quantifier} ({listed})"


def _within(term: After | Before) -> str:
    window = [] if term.limit is None else [print_duration(Duration(term.limit))]
    if term.parameter is not None:
        window = [term.parameter.text]
    if term.times != 1:
        window.append(f"{term.times} TIMES")
    return f"({', '.join(window)})" if window else ""


def _concepts(concept: Concept | ConceptBag, quote: Callable[[str], str]) -> str:
    if isinstance(concept, Concept):
        bare = _PLAIN_NAME.fullmatch(concept.text) or (
            ":" in concept.text and _BARE.fullmatch(concept.text)
        )
        return concept.text if bare else quote(concept.text)
    listed = ", ".join(_concepts(each, quote) for each in concept.concepts)
    return f"{concept.quantifier} ({listed})"


def _signed(literal: tree.Literal, constant: Callable[[tree.Literal], str]) -> str:
    value = literal.value
    if isinstance(value, int | float) and not isinstance(value, bool) and str(value)[0] == "-":
        return f"-{constant(tree.Literal(-value))}"
    return constant(literal)
