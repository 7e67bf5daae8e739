"""The words of RDF, RDFS and OWL that the rules of reasoning are written with.

Plain constants, so that the other modules of this room name them without loading rdflib's
namespaces, which look every attribute up as it is asked for.
"""

from __future__ import annotations

from typing import Final

from rdflib.term import Node, URIRef

Triple = tuple[Node, Node, Node]

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
OWL: Final = "http://www.w3.org/2002/07/owl#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"

STANDARD_PREFIXES: Final = {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}
VOCABULARIES: Final = (RDF, RDFS, OWL, XSD)

TYPE: Final = URIRef(RDF + "type")
FIRST: Final = URIRef(RDF + "first")
REST: Final = URIRef(RDF + "rest")
NIL: Final = URIRef(RDF + "nil")
PROPERTY: Final = URIRef(RDF + "Property")

SUB_CLASS: Final = URIRef(RDFS + "subClassOf")
SUB_PROPERTY: Final = URIRef(RDFS + "subPropertyOf")
DOMAIN: Final = URIRef(RDFS + "domain")
RANGE: Final = URIRef(RDFS + "range")

THING: Final = URIRef(OWL + "Thing")
NOTHING: Final = URIRef(OWL + "Nothing")
TRANSITIVE: Final = URIRef(OWL + "TransitiveProperty")
INVERSE_FUNCTIONAL: Final = URIRef(OWL + "InverseFunctionalProperty")
ASYMMETRIC: Final = URIRef(OWL + "AsymmetricProperty")
IRREFLEXIVE: Final = URIRef(OWL + "IrreflexiveProperty")
ONTOLOGY: Final = URIRef(OWL + "Ontology")
ALL_DIFFERENT: Final = URIRef(OWL + "AllDifferent")
ALL_DISJOINT_CLASSES: Final = URIRef(OWL + "AllDisjointClasses")
ALL_DISJOINT_PROPERTIES: Final = URIRef(OWL + "AllDisjointProperties")

SAME: Final = URIRef(OWL + "sameAs")
DIFFERENT: Final = URIRef(OWL + "differentFrom")
EQUIVALENT_CLASS: Final = URIRef(OWL + "equivalentClass")
EQUIVALENT_PROPERTY: Final = URIRef(OWL + "equivalentProperty")
DISJOINT: Final = URIRef(OWL + "disjointWith")
PROPERTY_DISJOINT: Final = URIRef(OWL + "propertyDisjointWith")
COMPLEMENT: Final = URIRef(OWL + "complementOf")
INTERSECTION: Final = URIRef(OWL + "intersectionOf")
UNION: Final = URIRef(OWL + "unionOf")
ONE_OF: Final = URIRef(OWL + "oneOf")
MEMBERS: Final = URIRef(OWL + "members")
DISTINCT_MEMBERS: Final = URIRef(OWL + "distinctMembers")
ON_PROPERTY: Final = URIRef(OWL + "onProperty")
ON_CLASS: Final = URIRef(OWL + "onClass")
HAS_VALUE: Final = URIRef(OWL + "hasValue")
SOME_VALUES: Final = URIRef(OWL + "someValuesFrom")
ALL_VALUES: Final = URIRef(OWL + "allValuesFrom")
MAX_CARDINALITY: Final = URIRef(OWL + "maxCardinality")
MAX_QUALIFIED: Final = URIRef(OWL + "maxQualifiedCardinality")
CHAIN: Final = URIRef(OWL + "propertyChainAxiom")
HAS_KEY: Final = URIRef(OWL + "hasKey")
SOURCE_INDIVIDUAL: Final = URIRef(OWL + "sourceIndividual")
ASSERTION_PROPERTY: Final = URIRef(OWL + "assertionProperty")
TARGET_INDIVIDUAL: Final = URIRef(OWL + "targetIndividual")
TARGET_VALUE: Final = URIRef(OWL + "targetValue")
