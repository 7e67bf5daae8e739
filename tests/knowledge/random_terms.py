"""Random concept terms and values over the names of `random_ontologies`."""

from __future__ import annotations

from random import Random
from typing import Any

from ensue.lang.expressions.terms import Concept, ConceptBag, Quantifier
from ensue.lang.expressions.tree import (
    ConceptTerm,
    IsA,
    Literal,
    Name,
    OntologyProperty,
    SameAs,
    Subsumes,
    Value,
)
from tests.knowledge.random_ontologies import HOME

NAME = Name(("thing",))


def random_term(random: Random, concepts: list[str], properties: list[str]) -> ConceptTerm:
    asked = _concept(random, concepts)
    if random.random() < 0.5 or not properties:
        tests: list[type[IsA | Subsumes | SameAs]] = [IsA, Subsumes, SameAs]
        return random.choice(tests)(NAME, asked)
    prop = random.choice(properties)
    if random.random() < 0.3:
        sign = random.choice(["=", "!=", "<", "<=", ">", ">="])
        constants: list[Value] = [1, 2.5, "x", True]
        return OntologyProperty(prop, NAME, sign, Literal(random.choice(constants)))
    if isinstance(asked, ConceptBag):
        return OntologyProperty(prop, NAME, random.choice(["IS_A", "SUBSUMES", "SAME_AS"]), asked)
    signs = ["=", "!=", "IS_A", "SUBSUMES", "SAME_AS"]
    return OntologyProperty(prop, NAME, random.choice(signs), asked)


def random_value(random: Random, concepts: list[str]) -> Any:
    if random.random() < 0.5:
        return _single(random, concepts)
    return [_single(random, concepts) for _ in range(random.randrange(4))]


def _concept(random: Random, concepts: list[str]) -> Concept | ConceptBag:
    if random.random() < 0.6:
        return Concept(random.choice(concepts))
    chosen = [Concept(random.choice(concepts)) for _ in range(random.randint(1, 3))]
    quantifiers: list[Quantifier] = ["ANY", "ALL", "ONLY"]
    return ConceptBag(random.choice(quantifiers), tuple(chosen))


def _single(random: Random, concepts: list[str]) -> Any:
    if random.random() < 0.15:
        return random.choice(["no such thing", 5, None, True, ""])
    name = random.choice(concepts)
    return random.choice([name, name.removeprefix(HOME), f"<{name}>"])
