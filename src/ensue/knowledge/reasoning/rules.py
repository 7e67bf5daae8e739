"""The rules of OWL 2 RL that the reasoner `reasonable` leaves out.

In come facts, out go the triples that follow from them in one step by these rules, named as in
tables 4 to 9 of the OWL 2 profiles (section 4.3). `closure` applies them in turn with
`reasonable`, which has the others, until nothing new follows. Rules that find a contradiction are
in `contradictions`. Rules of no use here are left out: `eq-ref`, `scm-cls`, `scm-op` and `scm-dp`
say only that everything is equal to itself, which `classification` knows, and `prp-ap` types the
built-in annotation properties.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

from rdflib.term import Literal, Node

from ensue.knowledge.reasoning.triples import Triples
from ensue.knowledge.reasoning.vocabulary import (
    ALL_VALUES,
    CHAIN,
    DOMAIN,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    HAS_KEY,
    HAS_VALUE,
    INTERSECTION,
    INVERSE_FUNCTIONAL,
    MAX_CARDINALITY,
    MAX_QUALIFIED,
    ON_CLASS,
    ON_PROPERTY,
    ONE_OF,
    RANGE,
    SAME,
    SOME_VALUES,
    SUB_CLASS,
    SUB_PROPERTY,
    THING,
    TYPE,
    UNION,
    Triple,
)

Rule = Callable[[Triples], Iterator[Triple]]


def consequences(facts: Triples) -> set[Triple]:
    """What follows in one step and is not yet known."""
    found = {triple for rule in RULES for triple in rule(facts)}
    return {triple for triple in found if triple not in facts}


def is_number(node: Node, number: int) -> bool:
    return isinstance(node, Literal) and node.value == number


def _property_chains(facts: Triples) -> Iterator[Triple]:
    """prp-spo2"""
    for implied, chain in facts.lists(CHAIN):
        if not chain:
            continue
        ends = {start: {start} for start in facts.by_subject(chain[0])}
        for link in chain:
            steps = facts.by_subject(link)
            ends = {
                start: {after for end in reached if end in steps for after in steps[end]}
                for start, reached in ends.items()
            }
        for start, reached in ends.items():
            for end in reached:
                yield start, implied, end


def _keys(facts: Triples) -> Iterator[Triple]:
    """prp-key"""
    for keyed, properties in facts.lists(HAS_KEY):
        if not properties:
            continue
        by_values: dict[tuple[Node, ...], set[Node]] = defaultdict(set)
        for member in facts.members(keyed):
            for values in product(*(facts.objects(member, each) for each in properties)):
                by_values[values].add(member)
        for members in by_values.values():
            yield from _all_same(members)


def _inverse_functional(facts: Triples) -> Iterator[Triple]:
    """prp-ifp; `closure` says why it is done here."""
    for unique in facts.members(INVERSE_FUNCTIONAL):
        owners: dict[Node, set[Node]] = defaultdict(set)
        for owner, value in facts.pairs(unique):
            owners[value].add(owner)
        for same in owners.values():
            yield from _all_same(same)


def _at_most_one(facts: Triples) -> Iterator[Triple]:
    """cls-maxc2, cls-maxqc3 and cls-maxqc4"""
    for cardinality in (MAX_CARDINALITY, MAX_QUALIFIED):
        for restriction, number in facts.pairs(cardinality):
            if not is_number(number, 1):
                continue
            classes = facts.objects(restriction, ON_CLASS) or {THING}
            for on_property, on_class in product(facts.objects(restriction, ON_PROPERTY), classes):
                for member in facts.members(restriction):
                    values = facts.objects(member, on_property)
                    if on_class != THING:
                        values = values & facts.members(on_class)
                    yield from _all_same(set(values))


def _all_same(nodes: set[Node]) -> Iterator[Triple]:
    named = [each for each in nodes if not isinstance(each, Literal)]
    for one, other in pairwise(named):
        yield one, SAME, other


def _enumerations(facts: Triples) -> Iterator[Triple]:
    """cls-oo"""
    for enumeration, members in facts.lists(ONE_OF):
        for member in members:
            if not isinstance(member, Literal):
                yield member, TYPE, enumeration


def _intersections_and_unions(facts: Triples) -> Iterator[Triple]:
    """cls-int1, scm-int and scm-uni

    `reasonable` has cls-int1, but knows only one of several intersections of a class.
    """
    for whole, parts in facts.lists(INTERSECTION):
        if parts:
            for member in set.intersection(*(set(facts.members(part)) for part in parts)):
                yield member, TYPE, whole
        for part in parts:
            yield whole, SUB_CLASS, part
    for whole, parts in facts.lists(UNION):
        for part in parts:
            yield part, SUB_CLASS, whole


def _equivalences(facts: Triples) -> Iterator[Triple]:
    """scm-eqc2, scm-eqp1 and scm-eqp2; scm-eqc1 is with `reasonable`."""
    for below, equivalent in ((SUB_CLASS, EQUIVALENT_CLASS), (SUB_PROPERTY, EQUIVALENT_PROPERTY)):
        for one, other in facts.pairs(equivalent):
            yield one, below, other
            yield other, below, one
        for one, other in facts.pairs(below):
            if one != other and one in facts.objects(other, below):
                yield one, equivalent, other


def _transitive_hierarchies(facts: Triples) -> Iterator[Triple]:
    """scm-sco and scm-spo"""
    for below in (SUB_CLASS, SUB_PROPERTY):
        parents = facts.by_subject(below)
        for start, direct in parents.items():
            reached, waiting = set(direct), list(direct)
            while waiting:
                further = parents.get(waiting.pop(), frozenset()) - reached
                reached |= further
                waiting += further
            for above in reached - direct:
                yield start, below, above


def _domains_and_ranges(facts: Triples) -> Iterator[Triple]:
    """scm-dom1, scm-dom2, scm-rng1 and scm-rng2"""
    for place in (DOMAIN, RANGE):
        for on_property, of_class in facts.pairs(place):
            for wider in facts.objects(of_class, SUB_CLASS):
                yield on_property, place, wider
            for narrower in facts.subjects(SUB_PROPERTY, on_property):
                yield narrower, place, of_class


def _restrictions(facts: Triples) -> Iterator[Triple]:
    """scm-hv, scm-svf1, scm-svf2, scm-avf1 and scm-avf2

    Every property and every class is below itself here (scm-op, scm-cls), so that two
    restrictions with the same property and filler are below each other.
    """
    for kind in (HAS_VALUE, SOME_VALUES, ALL_VALUES):
        found: dict[tuple[Node, Node], list[Node]] = defaultdict(list)
        for restriction, filler in facts.pairs(kind):
            for on_property in facts.objects(restriction, ON_PROPERTY):
                found[on_property, filler].append(restriction)
        for (on_property, filler), restrictions in found.items():
            for wider in {on_property, *facts.objects(on_property, SUB_PROPERTY)}:
                others = found.get((wider, filler), ())
                # What holds for all values of a property holds for those of a narrower one.
                if kind == ALL_VALUES:
                    yield from _below(others, restrictions)
                else:
                    yield from _below(restrictions, others)
            if kind != HAS_VALUE:
                for wider in facts.objects(filler, SUB_CLASS):
                    yield from _below(restrictions, found.get((on_property, wider), ()))


def _below(narrow: Sequence[Node], wide: Sequence[Node]) -> Iterator[Triple]:
    for one, other in product(narrow, wide):
        if one != other:
            yield one, SUB_CLASS, other


RULES: tuple[Rule, ...] = (
    _inverse_functional,
    _property_chains,
    _keys,
    _at_most_one,
    _enumerations,
    _intersections_and_unions,
    _equivalences,
    _transitive_hierarchies,
    _domains_and_ranges,
    _restrictions,
)
