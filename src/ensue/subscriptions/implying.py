"""When one term implies another: the covering of temporal and semantic operators.

A temporal term covers another of the same operator and reference if its inner filter covers the
other's (the paper's rule), its window is no shorter, and it counts no more. `FILTER` over the
latest few needs inner filters that match the same publications. A concept term implies another as
the ontology orders their concepts; without an ontology a concept implies only itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from ensue.lang.expressions.asking import Ontology
from ensue.lang.expressions.terms import Concept, ConceptBag
from ensue.lang.expressions.tree import (
    After,
    Before,
    Compared,
    Comparison,
    During,
    Exists,
    Expression,
    In,
    IsA,
    Like,
    Literal,
    Logic,
    Name,
    Related,
    SameAs,
    Subsumes,
)
from ensue.lang.expressions.values import EXACT_IN_DOUBLES

Covers = Callable[[Expression, Expression], bool]

_WEAKER = {"<": ("<", "<="), ">": (">", ">=")}
"""For each operator, the operators that hold wherever it holds."""


def conjuncts_of(expression: Expression) -> Iterator[Expression]:
    """The operands of the outermost AND, all of which hold where the expression does."""
    if isinstance(expression, Logic) and set(expression.operators) == {"AND"}:
        for each in expression.operands:
            yield from conjuncts_of(each)
    else:
        yield expression


def plainly_implies(special: Expression, general: Expression) -> bool:
    """Whether each condition of a filter is one of another's, or a wider bound than one of them.

    It misses much, and costs next to nothing. Only of comparisons and their like: what else is
    true inside of an AND need not be by itself, where nothing is cast to a boolean.
    """
    given = list(conjuncts_of(special))
    return all(
        isinstance(wanted, Comparison | Like | In | Exists)
        and (wanted in given or any(_bounds_imply(each, wanted) for each in given))
        for wanted in conjuncts_of(general)
    )


def _bounds_imply(special: Expression, general: Expression) -> bool:
    match special, general:
        case (
            Comparison(Name(name), ((sign, Literal(bound)),)),
            Comparison(Name(other), ((wider, Literal(limit)),)),
        ) if name == other and _is_exact(bound) and _is_exact(limit):
            beyond: float = limit - bound
            if sign in ("<", "<=") and wider in ("<", "<="):
                return beyond > 0 or (beyond == 0 and (sign == "<" or wider == "<="))
            if sign in (">", ">=") and wider in (">", ">="):
                return beyond < 0 or (beyond == 0 and (sign == ">" or wider == ">="))
    return False


def _is_exact(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and abs(value) < EXACT_IN_DOUBLES


def term_implies(special: Any, general: Any, covers: Covers) -> bool:
    """Whether a temporal term is true wherever another one is, over the same history."""
    if type(special) is not type(general):
        return False
    match special, general:
        case ((After() | Before()), (After() | Before())):
            return (
                special.reference == general.reference
                and _is_no_longer(special.limit, general.limit)
                and general.times <= special.times
                and covers(general.filter, special.filter)
            )
        case During(), During():
            return (
                special.reference == general.reference
                and general.times <= special.times
                and covers(general.filter, special.filter)
            )
        case Related(), Related():
            alike = (special.relation, special.reference) == (general.relation, general.reference)
            return alike and covers(general.filter, special.filter)
        case Compared(), Compared():
            return _compared_implies(special, general, covers)
        case _:
            return False


def _compared_implies(special: Compared, general: Compared, covers: Covers) -> bool:
    weaker = _WEAKER.get(special.operator, (special.operator,))
    if special.name != general.name or general.operator not in weaker:
        return False
    if not covers(general.filter, special.filter):
        return False
    if general.limit is None:
        return True
    # Among more publications the latest few are others.
    alike = covers(special.filter, general.filter)
    return alike and special.limit is not None and special.limit <= general.limit


def _is_no_longer(limit: int | None, than: int | None) -> bool:
    return than is None or (limit is not None and limit <= than)


def concept_implies(special: Any, general: Any, ontology: Ontology | None) -> bool:
    """Whether a concept term is true wherever another one is."""
    tests = (IsA, Subsumes, SameAs)
    if not isinstance(special, tests) or not isinstance(general, tests):
        return False
    if special.name != general.name:
        return False

    def implies(one: Concept, other: Concept) -> bool:
        return _implies(type(special), one, type(general), other, ontology)

    here, there = _bag(special.concept), _bag(general.concept)
    some_for_each = all(any(implies(one, to) for to in there.concepts) for one in here.concepts)
    match here.quantifier, there.quantifier:
        case ("ANY", "ANY") | ("ONLY", "ANY" | "ONLY"):
            return some_for_each
        case "ALL", "ALL":
            return all(any(implies(one, to) for one in here.concepts) for to in there.concepts)
        case "ALL", "ANY":
            return any(implies(one, to) for one in here.concepts for to in there.concepts)
        case _:
            return False


def _bag(concept: Concept | ConceptBag) -> ConceptBag:
    return concept if isinstance(concept, ConceptBag) else ConceptBag("ANY", (concept,))


def _implies(
    special: type, one: Concept, general: type, other: Concept, ontology: Ontology | None
) -> bool:
    if special is general and one.text == other.text:
        return True
    if ontology is None:
        return False
    left, right = ontology.code(one.text), ontology.code(other.text)
    if left is None or right is None:
        # Nothing meets a concept that is not known.
        return left is None
    if special is general:
        word = "IS_A" if special is IsA else "SUBSUMES" if special is Subsumes else "SAME_AS"
        return ontology.test(word, left, right)
    if special is SameAs:
        return ontology.test("IS_A" if general is IsA else "SUBSUMES", left, right)
    return False
