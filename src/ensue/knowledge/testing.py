"""Concept terms as tests of codes.

In comes a term of a filter and a snapshot, out goes a `CodeTest`: sets of codes that the values of
an attribute must meet. What a term means is defined by `ensue.lang.expressions.asking`, value by
value; here it is worked out once, so that an event costs a look-up of its text and a bisection.
A `LiveTest` follows an ontology: it has the test of the snapshot in force. Names that the ontology
does not know are refused, with their close matches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any, Final

from ensue.errors import OntologyError
from ensue.knowledge.codes import UNKNOWN, CodeSet
from ensue.knowledge.snapshot import OntologySnapshot
from ensue.lang.expressions.terms import Concept, ConceptBag, TextSets
from ensue.lang.expressions.tree import ConceptTerm, IsA, Literal, OntologyProperty, SameAs

_NOTHING: Final = CodeSet()


@dataclass(frozen=True)
class CodeTest:
    """A bag of codes passes if each set of `needs` has one of them, and none is refused.

    `only` refuses what is outside of it, `never` what is in it.
    """

    needs: tuple[CodeSet, ...]
    only: CodeSet | None = None
    never: CodeSet = _NOTHING

    def holds(self, codes: Sequence[int]) -> bool:
        if len(codes) == 1:
            return codes[0] in self.singly
        return (
            all(any(code in needed for code in codes) for needed in self.needs)
            and (self.only is None or all(code in self.only for code in codes))
            and not any(code in self.never for code in codes)
        )

    @cached_property
    def singly(self) -> CodeSet:
        """The codes that pass by themselves."""
        first, *others = (set(each) for each in self.needs)
        passing = first.intersection(*others) - set(self.never)
        return CodeSet.of(passing if self.only is None else passing & set(self.only))


def compiled(term: ConceptTerm, snapshot: OntologySnapshot) -> CodeTest:
    """The test of a term. Raises `OntologyError` with every name that is unknown or ambiguous."""
    problems: list[str] = []
    concepts: list[int] = []
    prop = -1
    if isinstance(term, OntologyProperty):
        try:
            prop = snapshot.property_code(term.property)
        except OntologyError as error:
            problems += error.problems
    for each in _concepts(term.concept):
        try:
            concepts.append(snapshot.names.find(each.text))
        except OntologyError as error:
            problems += error.problems
    if problems:
        raise OntologyError(problems)
    if isinstance(term, OntologyProperty):
        return _of_property(term, prop, concepts, snapshot)
    word = {IsA: "IS_A", SameAs: "SAME_AS"}.get(type(term), "SUBSUMES")
    sets = [snapshot.passing(word, each) for each in concepts]
    return _quantified(_quantifier(term.concept), sets)


def _quantified(quantifier: str, sets: Sequence[CodeSet]) -> CodeTest:
    if quantifier == "ALL":
        return CodeTest(tuple(sets))
    any_of = reduce(or_, sets)
    return CodeTest((any_of,), only=any_of if quantifier == "ONLY" else None)


def _of_property(
    term: OntologyProperty, prop: int, concepts: Sequence[int], snapshot: OntologySnapshot
) -> CodeTest:
    if isinstance(term.concept, Literal):
        return CodeTest((snapshot.with_constant(prop, term.operator, term.concept.value),))
    passing = [snapshot.values_passing(prop, term.operator, each) for each in concepts]
    if _quantifier(term.concept) == "ONLY":
        # Not the concepts but the values of the property must all be among the options.
        any_of = reduce(or_, passing)
        with_any = snapshot.having(prop, snapshot.everything)
        return CodeTest((with_any,), never=snapshot.having(prop, snapshot.everything - any_of))
    sets = [snapshot.having(prop, each) for each in passing]
    return _quantified(_quantifier(term.concept), sets)


def _concepts(given: Concept | ConceptBag | Literal) -> tuple[Concept, ...]:
    match given:
        case Concept():
            return (given,)
        case ConceptBag(_, concepts):
            return concepts
        case _:
            return ()


def _quantifier(given: Concept | ConceptBag | Literal) -> str:
    return given.quantifier if isinstance(given, ConceptBag) else "ANY"


class LiveTest:
    """The test of a term, by the snapshot in force. Made by `Ontology.bound`.

    One term has one test, so that bound terms are equal where their terms are. Other processes are
    given sets of texts (`texts`).
    """

    def __init__(self, term: ConceptTerm, snapshot: OntologySnapshot) -> None:
        self.term = term
        self.take(snapshot, compiled(term, snapshot))

    def take(self, snapshot: OntologySnapshot, test: CodeTest) -> None:
        """Test by another snapshot. One assignment, so that a question never sees two snapshots."""
        self._current = (snapshot.names.spellings.get, test.singly.bounds, test, snapshot)

    def holds(self, value: Any) -> bool:
        code_of, bounds, test, _ = self._current
        if value.__class__ is str:
            return bisect_right(bounds, code_of(value, UNKNOWN)) & 1 == 1
        if isinstance(value, str) or not isinstance(value, Sequence):
            value = (value,)
        codes = [code_of(each, UNKNOWN) if isinstance(each, str) else UNKNOWN for each in value]
        return bool(codes) and test.holds(codes)

    def texts(self) -> TextSets:
        *_, test, snapshot = self._current

        def spelled(codes: CodeSet) -> frozenset[str]:
            return frozenset(snapshot.names.spelled(codes))

        return TextSets(
            tuple(map(spelled, test.needs)),
            None if test.only is None else spelled(test.only),
            spelled(test.never),
        )

    def __repr__(self) -> str:
        return f"LiveTest({self.term!r})"
