"""The choice of the place at which a conjunction waits: one of its tests is its witness.

Each test offers a place: tables and keys in an `AttributeIndex`, or an interval. The place that an
event is least likely to reach is chosen, by the constants seen so far: an equality among many
constants before a narrow range, a range before a prefix of one character, presence last. A test
that its place decides exactly is not checked again. A conjunction without a test of a name waits
for an atom that is evaluated (`index`), once for each event and for all such conjunctions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.lang.expressions.asking import Ontology
from ensue.lang.expressions.builtins.functions import FUNCTIONS
from ensue.lang.expressions.terms import Concept, ConceptBag
from ensue.lang.expressions.tree import (
    Arithmetic,
    Call,
    Compared,
    Comparison,
    Expression,
    Has,
    In,
    Like,
    Logic,
    Name,
    Negate,
    Not,
    OntologyProperty,
    SameAs,
    Subsumes,
)
from ensue.lang.expressions.values import CASTS, EXACT_IN_DOUBLES, FaultError
from ensue.lang.matching.attribute import (
    GRAM,
    LONGEST_END,
    PRESENT,
    AttributeIndex,
    Table,
    listed_key,
)
from ensue.lang.matching.intervals import outwards
from ensue.lang.matching.outcomes import Signed
from ensue.lang.matching.patterns import shape_of
from ensue.lang.matching.tests import Parts, Test, View
from ensue.lang.matching.views import time_view

_RANGES = (View.NUMBER, View.TIME, View.OWN_TIME)
_BARELY = 0.9
"""The assumed likelihood that an event has a certain name."""
_STRICT = frozenset(name for name, each in FUNCTIONS.items() if not each.takes_null)
"""Functions that are in error if an argument is."""


@dataclass(slots=True)
class IndexPlace:
    """A place: `keys` in tables, each of which leads to the conjunction, or a `range`.

    `decided` has the positions of the tests that need no further check there.
    """

    likelihood: float
    keys: list[tuple[Table, Any]]
    range: tuple[Any, float, float] | None = None
    decided: tuple[int, ...] = ()


Find = Callable[[Parts], AttributeIndex]


def places_of(
    signed: Sequence[Signed],
    tests: Sequence[Test | None],
    attribute: Find,
    ontology: Ontology | None,
) -> Iterator[IndexPlace]:
    """All places at which a conjunction could wait."""
    for position, (each, test) in enumerate(zip(signed, tests, strict=True)):
        if test is None:
            for parts in needed_names(each.atom, each.positive):
                yield IndexPlace(_BARELY, [(attribute(parts).present, PRESENT)])
            continue
        yield _of_test(position, test, attribute(test.name), ontology)
    yield from _ranges(tests, attribute)


def _of_test(
    position: int, test: Test, attribute: AttributeIndex, ontology: Ontology | None
) -> IndexPlace:
    present = IndexPlace(_BARELY, [(attribute.present, PRESENT)])
    if test.view is View.PRESENCE:
        key = (attribute.present, PRESENT) if test.positive else (attribute.absent, attribute.slot)
        return IndexPlace(_BARELY, [key], decided=(position,))
    if not test.positive or test.sign != "=":
        return present
    constant, decided = test.constant, (position,)
    match test.view:
        case View.TEXT:
            keys = [(attribute.by_text, constant)]
            instant = time_view(constant)
            if instant is not None:
                keys.append((attribute.by_own_time, instant))
            return IndexPlace(attribute.chance(test.view), keys, decided=decided)
        case View.NUMBER:
            exact = abs(constant) < EXACT_IN_DOUBLES
            keys = [(attribute.by_number, float(constant))]
            return IndexPlace(attribute.chance(test.view), keys, decided=decided if exact else ())
        case View.TRUTH:
            return IndexPlace(0.5, [(attribute.by_truth, constant)], decided=decided)
        case View.TIME:
            return IndexPlace(
                attribute.chance(test.view), [(attribute.by_time, constant)], None, decided
            )
        case View.OWN_TIME:
            keys = [(attribute.by_own_time, constant)]
            return IndexPlace(attribute.chance(test.view), keys, None, decided)
        case View.LISTED:
            return _listed(attribute, constant, decided)
        case View.PATTERN:
            return _pattern(attribute, constant, decided) or present
        case View.BAG:
            return _bag(attribute, constant, decided)
        case View.CONCEPT if ontology is not None:
            return _concept(attribute, constant, decided, ontology) or present
        case _:
            return present


def _listed(
    attribute: AttributeIndex, options: Sequence[Any], decided: tuple[int, ...]
) -> IndexPlace:
    """The place for `IN`: keys of all constants cast to each kind to which all can be cast."""
    keys: list[tuple[Table, Any]] = []
    exact = True
    for kind in ("string", "number", "boolean", "timestamp"):
        try:
            cast = [CASTS[kind](each) for each in options]
        except FaultError:
            continue
        table = attribute.listed.setdefault(kind, {})
        keys += [(table, key) for key in {listed_key(kind, each) for each in cast}]
        exact &= kind != "number" or all(abs(each) < EXACT_IN_DOUBLES for each in cast)
    likelihood = min(1.0, len(options) * attribute.chance(View.LISTED))
    return IndexPlace(likelihood, keys, decided=decided if exact else ())


def _pattern(
    attribute: AttributeIndex, pattern: str, decided: tuple[int, ...]
) -> IndexPlace | None:
    shape = shape_of(pattern)
    if shape.exact is not None:
        keys = [(attribute.by_pattern, shape.exact)]
        return IndexPlace(attribute.chance(View.PATTERN), keys, decided=decided)
    offers: list[tuple[float, tuple[Table, str], bool]] = []
    if shape.prefix:
        head = shape.prefix[:LONGEST_END]
        exact = shape.is_prefix and head == shape.prefix
        offers.append((len(head) + 0.5, (attribute.prefixes, head), exact))
    if shape.suffix:
        tail = shape.suffix[-LONGEST_END:]
        exact = shape.is_suffix and tail == shape.suffix
        offers.append((float(len(tail)), (attribute.suffixes, tail), exact))
    if shape.inner:
        size = min(GRAM, len(shape.inner))
        grams = {shape.inner[at : at + size] for at in range(len(shape.inner) - size + 1)}
        # Three characters that no conjunction waits for yet are preferred.
        gram = min(grams, key=lambda each: (each in attribute.grams, each))
        exact = shape.is_inner and gram == shape.inner
        offers.append((size - 0.5, (attribute.grams, gram), exact))
    if not offers:
        return None
    weight, key, exact = max(offers, key=lambda each: each[0])
    return IndexPlace(max(1e-4, 0.5 * 0.2**weight), [key], decided=decided if exact else ())


def _bag(
    attribute: AttributeIndex, asked: tuple[str, Sequence[Any]], decided: tuple[int, ...]
) -> IndexPlace:
    quantifier, options = asked
    looked_up = options[:1] if quantifier == "ALL" else options
    keys: dict[tuple[int, Any], tuple[Table, Any]] = {}
    for kind in ("string", "number", "boolean", "timestamp"):
        table = attribute.bags.setdefault(kind, {})
        for option in looked_up:
            try:
                key = listed_key(kind, CASTS[kind](option))
            except FaultError:
                continue
            keys[(id(table), key)] = (table, key)
    exact = quantifier == "ANY" and not any(
        isinstance(each, int | float) and abs(each) >= EXACT_IN_DOUBLES for each in options
    )
    likelihood = min(1.0, 2 * len(looked_up) * attribute.chance(View.BAG))
    return IndexPlace(likelihood, list(keys.values()), decided=decided if exact else ())


def _concept(
    attribute: AttributeIndex,
    concept: Concept | ConceptBag,
    decided: tuple[int, ...],
    ontology: Ontology,
) -> IndexPlace | None:
    bag = concept if isinstance(concept, ConceptBag) else ConceptBag("ANY", (concept,))
    asked = bag.concepts[:1] if bag.quantifier == "ALL" else bag.concepts
    codes = {ontology.code(each.text) for each in asked} - {None}
    if not codes:
        return None
    keys = [(attribute.concepts, code) for code in codes]
    exact = decided if bag.quantifier == "ANY" else ()
    return IndexPlace(min(0.8, 2 * len(keys) * attribute.chance(View.CONCEPT)), keys, decided=exact)


def _ranges(tests: Sequence[Test | None], attribute: Find) -> Iterator[IndexPlace]:
    """The bounds on one view of a name as one interval."""
    bounds: dict[tuple[Parts, View], list[Test]] = {}
    for test in tests:
        if test is not None and test.view in _RANGES and test.sign != "=":
            bounds.setdefault((test.name, test.view), []).append(test)
    for (parts, view), chosen in bounds.items():
        low, high = -math.inf, math.inf
        for test in chosen:
            below, above = outwards(test.constant, test.constant)
            # A bound that must be false is a bound on the other side.
            if (test.sign in (">", ">=")) is test.positive:
                low = max(low, below)
            else:
                high = min(high, above)
        where = attribute(parts).ranges(view)
        yield IndexPlace(where.share(low, high), [], (where, low, high))


def needed_names(atom: Expression, positive: bool) -> set[Parts]:
    """The names without which an atom cannot be as wanted."""
    match atom:
        case Name(parts):
            return {parts}
        case Not(operand):
            return needed_names(operand, not positive)
        case Negate(operand) | Like(operand):
            return _all_needed((operand,))
        case Logic(operands):
            return needed_names(operands[0], positive)
        case In(operand, options):
            return _all_needed((operand, *options))
        case Arithmetic(first, rest) | Comparison(first, rest):
            return _all_needed((first, *(each for _, each in rest)))
        case Call(function, arguments) if function in _STRICT:
            return _all_needed(arguments)
        case Has(name):
            return {name.parts}
        case Compared() | SameAs() | Subsumes() | OntologyProperty() if positive:
            return {atom.name.parts}
        case _:
            return set()


def _all_needed(expressions: Sequence[Expression]) -> set[Parts]:
    """The names without which one of several operands would be in error."""
    found: set[Parts] = set()
    for each in expressions:
        match each:
            case Compared() | SameAs() | Subsumes() | OntologyProperty() | Logic() | Not():
                # Both outcomes are possible: only names that both need are needed.
                found |= needed_names(each, True) & needed_names(each, False)
            case _:
                found |= needed_names(each, True)
    return found
