"""What an ontology says and denies: the rules of OWL 2 RL whose conclusion is `false`.

In come facts that are closed under the other rules, out goes a sentence for each contradiction,
with the names of what contradicts. From a contradiction everything follows, so an ontology that
has one is refused by `closure`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from rdflib.term import Literal, Node

from ensue.knowledge.reasoning.datatypes import clashes_with_range, is_ill_typed
from ensue.knowledge.reasoning.rules import is_number
from ensue.knowledge.reasoning.triples import Triples
from ensue.knowledge.reasoning.vocabulary import (
    ALL_DIFFERENT,
    ALL_DISJOINT_CLASSES,
    ALL_DISJOINT_PROPERTIES,
    ASSERTION_PROPERTY,
    ASYMMETRIC,
    COMPLEMENT,
    DIFFERENT,
    DISJOINT,
    DISTINCT_MEMBERS,
    IRREFLEXIVE,
    MAX_CARDINALITY,
    MAX_QUALIFIED,
    MEMBERS,
    NOTHING,
    ON_CLASS,
    ON_PROPERTY,
    PROPERTY_DISJOINT,
    RANGE,
    SAME,
    SOURCE_INDIVIDUAL,
    TARGET_INDIVIDUAL,
    TARGET_VALUE,
    THING,
    TYPE,
)

Show = Callable[[Node], str]


def contradictions(facts: Triples, show: Show) -> list[str]:
    """A sentence for each contradiction, sorted; `show` writes a name as its reader knows it."""
    return sorted({text for check in _CHECKS for text in check(facts, show)})


def _same_and_different(facts: Triples, show: Show) -> Iterator[str]:
    """eq-diff1, eq-diff2 and eq-diff3"""
    for one, other in facts.pairs(DIFFERENT):
        if one == other or other in facts.objects(one, SAME):
            yield f"{show(one)} and {show(other)} are both the same and different"
    for predicate in (MEMBERS, DISTINCT_MEMBERS):
        for axiom, members in facts.lists(predicate):
            if axiom not in facts.members(ALL_DIFFERENT):
                continue
            for one, other in combinations(members, 2):
                if other in facts.objects(one, SAME):
                    yield f"{show(one)} and {show(other)} are both the same and all different"


def _property_axioms(facts: Triples, show: Show) -> Iterator[str]:
    """prp-irp, prp-asyp, prp-pdw and prp-adp"""
    for irreflexive in facts.members(IRREFLEXIVE):
        for one, other in facts.pairs(irreflexive):
            if one == other:
                yield f"{show(one)} stands in the irreflexive {show(irreflexive)} to itself"
    for asymmetric in facts.members(ASYMMETRIC):
        for one, other in facts.pairs(asymmetric):
            if one in facts.objects(other, asymmetric):
                yield (
                    f"{show(one)} and {show(other)} stand in the asymmetric "
                    f"{show(asymmetric)} in both directions"
                )
    disjoint = list(facts.pairs(PROPERTY_DISJOINT))
    for axiom, members in facts.lists(MEMBERS):
        if axiom in facts.members(ALL_DISJOINT_PROPERTIES):
            disjoint += combinations(members, 2)
    for p, q in disjoint:
        for one, other in facts.pairs(p):
            if other in facts.objects(one, q):
                yield (
                    f"{show(one)} stands to {show(other)} in {show(p)} and in {show(q)}, "
                    "which are disjoint"
                )


def _denied_assertions(facts: Triples, show: Show) -> Iterator[str]:
    """prp-npa1 and prp-npa2"""
    for axiom, subject in facts.pairs(SOURCE_INDIVIDUAL):
        for predicate in facts.objects(axiom, ASSERTION_PROPERTY):
            denied = facts.objects(axiom, TARGET_INDIVIDUAL) | facts.objects(axiom, TARGET_VALUE)
            for value in denied & facts.objects(subject, predicate):
                yield (
                    f"{show(subject)} {show(predicate)} {show(value)} is both said and denied "
                    "(owl:NegativePropertyAssertion)"
                )


def _disjoint_classes(facts: Triples, show: Show) -> Iterator[str]:
    """cls-nothing2, cls-com, cax-dw and cax-adc"""
    for member in facts.members(NOTHING):
        yield f"{show(member)} is a member of owl:Nothing"
    disjoint = [*facts.pairs(DISJOINT), *facts.pairs(COMPLEMENT)]
    for axiom, members in facts.lists(MEMBERS):
        if axiom in facts.members(ALL_DISJOINT_CLASSES):
            disjoint += combinations(members, 2)
    for one, other in disjoint:
        for member in facts.members(one) & facts.members(other):
            yield f"{show(member)} is in {show(one)} and in {show(other)}, which are disjoint"


def _none_at_most(facts: Triples, show: Show) -> Iterator[str]:
    """cls-maxc1, cls-maxqc1 and cls-maxqc2"""
    for cardinality in (MAX_CARDINALITY, MAX_QUALIFIED):
        for restriction, number in facts.pairs(cardinality):
            if not is_number(number, 0):
                continue
            classes = facts.objects(restriction, ON_CLASS) or {THING}
            for predicate in facts.objects(restriction, ON_PROPERTY):
                for member in facts.members(restriction):
                    for value in facts.objects(member, predicate):
                        if any(each == THING or (value, TYPE, each) in facts for each in classes):
                            yield (
                                f"{show(member)} may have no {show(predicate)} and has "
                                f"{show(value)}"
                            )


def _datatypes(facts: Triples, show: Show) -> Iterator[str]:
    """dt-not-type, for literals as they stand and in the range of their property"""
    ranges = facts.by_subject(RANGE)
    for predicate in facts.predicates:
        for _, value in facts.pairs(predicate):
            if not isinstance(value, Literal):
                continue
            if is_ill_typed(value):
                yield f"{show(value)}, a value of {show(predicate)}, is not of its own datatype"
                continue
            for datatype in ranges.get(predicate, ()):
                if clashes_with_range(value, datatype):
                    yield (
                        f"{show(value)}, a value of {show(predicate)}, is outside of its "
                        f"range {show(datatype)}"
                    )


_CHECKS = (
    _same_and_different,
    _property_axioms,
    _denied_assertions,
    _disjoint_classes,
    _none_at_most,
    _datatypes,
)
