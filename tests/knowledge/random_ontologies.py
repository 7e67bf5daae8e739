"""Random ontologies, and what the judge `owlrl` says that they entail.

The ontologies are small and dense, so that rules meet: a handful of classes, properties and
individuals, and axioms of every kind that OWL 2 RL has rules for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

import owlrl
from rdflib import OWL, RDF, RDFS, BNode, Graph, Literal, URIRef
from rdflib.collection import Collection
from rdflib.term import Node

HOME = "http://example.org/"
Triple = tuple[Node, Node, Node]


def iri(name: str) -> URIRef:
    return URIRef(HOME + name)


def is_named(triple: Triple) -> bool:
    """A triple between names of the ontology itself that is not trivial."""
    subject, predicate, value = triple
    return (
        subject != value
        and str(subject).startswith(HOME)
        and isinstance(value, URIRef)
        and (str(value).startswith(HOME) or value == OWL.Nothing)
        and (str(predicate).startswith(HOME) or predicate in TOLD)
    )


TOLD = {
    RDF.type,
    RDFS.subClassOf,
    RDFS.subPropertyOf,
    RDFS.domain,
    RDFS.range,
    OWL.sameAs,
    OWL.equivalentClass,
    OWL.equivalentProperty,
}


def named(triples: Iterable[Triple]) -> set[Triple]:
    return {triple for triple in triples if is_named(triple)}


def judged(graph: Graph) -> tuple[set[Triple], list[str]]:
    """What `owlrl` derives between names, and the contradictions that it reports."""
    closed = Graph()
    closed += graph
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(closed)
    errors = URIRef("http://www.daml.org/2002/03/agents/agent-ont#error")
    return named(closed), [str(text) for text in closed.objects(None, errors)]


def random_ontology(random: Random, axioms: int, contradicting: bool = False) -> Graph:
    graph = Graph()
    kinds = [*_AXIOMS, *(_DENIALS if contradicting else ())]
    for _ in range(axioms):
        random.choice(kinds)(graph, random)
    return graph


def _one(random: Random, letter: str, count: int) -> URIRef:
    return iri(f"{letter}{random.randrange(count)}")


def _c(random: Random) -> URIRef:
    return _one(random, "C", 6)


def _p(random: Random) -> URIRef:
    return _one(random, "p", 4)


def _i(random: Random) -> URIRef:
    return _one(random, "i", 5)


def _listed(graph: Graph, members: Sequence[Node]) -> Node:
    head = BNode()
    Collection(graph, head, list(members))
    return head


def _some(random: Random, of: Callable[[Random], URIRef]) -> list[Node]:
    return list(dict.fromkeys(of(random) for _ in range(random.randint(1, 3))))


def _restriction(graph: Graph, random: Random) -> BNode:
    node = BNode()
    graph.add((node, RDF.type, OWL.Restriction))
    graph.add((node, OWL.onProperty, _p(random)))
    kind = random.choice(["value", "some", "all", "max", "qualified"])
    if kind == "value":
        graph.add((node, OWL.hasValue, _i(random)))
    elif kind == "some":
        graph.add((node, OWL.someValuesFrom, _c(random)))
    elif kind == "all":
        graph.add((node, OWL.allValuesFrom, _c(random)))
    elif kind == "max":
        graph.add((node, OWL.maxCardinality, Literal(1)))
    else:
        graph.add((node, OWL.maxQualifiedCardinality, Literal(1)))
        graph.add((node, OWL.onClass, random.choice([_c(random), OWL.Thing])))
    return node


def _class(graph: Graph, random: Random) -> Node:
    return _restriction(graph, random) if random.random() < 0.4 else _c(random)


def _axiom(predicate: URIRef, of: Callable[[Random], URIRef]) -> Callable[[Graph, Random], None]:
    def add(graph: Graph, random: Random) -> None:
        graph.add((of(random), predicate, of(random)))

    return add


def _list_axiom(
    predicate: URIRef, subject: Callable[[Random], URIRef], of: Callable[[Random], URIRef]
) -> Callable[[Graph, Random], None]:
    def add(graph: Graph, random: Random) -> None:
        graph.add((subject(random), predicate, _listed(graph, _some(random, of))))

    return add


def _sub_class(graph: Graph, random: Random) -> None:
    narrow, wide = _c(random), _class(graph, random)
    graph.add((narrow, RDF.type, OWL.Class))
    if random.random() < 0.7:
        graph.add((narrow, RDFS.subClassOf, wide))
    else:
        graph.add((wide, RDFS.subClassOf, narrow))


def _equivalent(graph: Graph, random: Random) -> None:
    graph.add((_c(random), OWL.equivalentClass, _class(graph, random)))


def _member(graph: Graph, random: Random) -> None:
    graph.add((_i(random), RDF.type, _c(random)))


def _statement(graph: Graph, random: Random) -> None:
    graph.add((_i(random), _p(random), _i(random)))


def _characteristic(graph: Graph, random: Random) -> None:
    kinds = [OWL.TransitiveProperty, OWL.SymmetricProperty, OWL.FunctionalProperty]
    graph.add((_p(random), RDF.type, random.choice([*kinds, OWL.InverseFunctionalProperty])))


def _domain_or_range(graph: Graph, random: Random) -> None:
    graph.add((_p(random), random.choice([RDFS.domain, RDFS.range]), _c(random)))


_AXIOMS = (
    _sub_class,
    _sub_class,
    _equivalent,
    _member,
    _member,
    _statement,
    _statement,
    _statement,
    _characteristic,
    _domain_or_range,
    _axiom(RDFS.subPropertyOf, _p),
    _axiom(OWL.equivalentProperty, _p),
    _axiom(OWL.inverseOf, _p),
    _axiom(OWL.sameAs, _i),
    _list_axiom(OWL.intersectionOf, _c, _c),
    _list_axiom(OWL.unionOf, _c, _c),
    _list_axiom(OWL.oneOf, _c, _i),
    _list_axiom(OWL.propertyChainAxiom, _p, _p),
)


def _all_distinct(graph: Graph, random: Random) -> None:
    node = BNode()
    kind, of = random.choice(
        [
            (OWL.AllDifferent, _i),
            (OWL.AllDisjointClasses, _c),
            (OWL.AllDisjointProperties, _p),
        ]
    )
    graph.add((node, RDF.type, kind))
    graph.add((node, OWL.members, _listed(graph, _some(random, of))))


def _denied(graph: Graph, random: Random) -> None:
    node = BNode()
    graph.add((node, OWL.sourceIndividual, _i(random)))
    graph.add((node, OWL.assertionProperty, _p(random)))
    graph.add((node, OWL.targetIndividual, _i(random)))


def _none(graph: Graph, random: Random) -> None:
    node = _restriction(graph, random)
    graph.add((node, OWL.maxCardinality, Literal(0)))
    graph.add((_c(random), RDFS.subClassOf, node))


def _strict_characteristic(graph: Graph, random: Random) -> None:
    kinds = [OWL.IrreflexiveProperty, OWL.AsymmetricProperty]
    graph.add((_p(random), RDF.type, random.choice(kinds)))


def _empty(graph: Graph, random: Random) -> None:
    graph.add((_c(random), RDFS.subClassOf, OWL.Nothing))


_DENIALS = (
    _all_distinct,
    _denied,
    _none,
    _strict_characteristic,
    _empty,
    _axiom(OWL.differentFrom, _i),
    _axiom(OWL.disjointWith, _c),
    _axiom(OWL.complementOf, _c),
    _axiom(OWL.propertyDisjointWith, _p),
)
