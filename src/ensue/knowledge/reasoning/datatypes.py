"""Literals and the datatypes they claim or are required to be of.

`is_ill_typed` says that a text is no value of its own datatype; `clashes_with_range` that a value
is surely outside of another datatype. Only what is certain is said: a datatype that is not known
here has any value.
"""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree

from rdflib.term import Literal, Node, URIRef

from ensue.knowledge.reasoning.vocabulary import RDF, XSD
from ensue.knowledge.sources import quiet

_LANGUAGE: Final = URIRef(RDF + "langString")
_XML: Final = URIRef(RDF + "XMLLiteral")

_DECIMALS: Final = frozenset(
    URIRef(XSD + each)
    for each in (
        "decimal",
        "integer",
        "nonPositiveInteger",
        "negativeInteger",
        "nonNegativeInteger",
        "positiveInteger",
        "long",
        "int",
        "short",
        "byte",
        "unsignedLong",
        "unsignedInt",
        "unsignedShort",
        "unsignedByte",
    )
)
_TEXTS: Final = frozenset(
    URIRef(XSD + each)
    for each in ("string", "normalizedString", "token", "language", "Name", "NCName", "NMTOKEN")
)
_ALONE: Final = tuple(
    frozenset({URIRef(XSD + each)})
    for each in ("boolean", "float", "double", "anyURI", "hexBinary", "base64Binary")
)
_FAMILIES: Final = (_DECIMALS, _TEXTS, *_ALONE, frozenset({_LANGUAGE}), frozenset({_XML}))
"""Datatypes whose value spaces may meet; those of two families never do."""


def is_ill_typed(literal: Literal) -> bool:
    if literal.datatype == _XML:
        return not _is_xml(str(literal))
    return bool(literal.ill_typed)


def clashes_with_range(literal: Literal, datatype: Node) -> bool:
    own = _family(_datatype(literal))
    wanted = _family(datatype)
    if own is None or wanted is None:
        return False
    if own is not wanted:
        return True
    # A value of the family that the narrower datatype cannot write: 300 is no byte.
    return own is _DECIMALS and is_ill_typed(_as(_digits(literal), URIRef(str(datatype))))


def _digits(literal: Literal) -> str:
    """The shortest text of a decimal: 5.0 is an integer, however it was written."""
    value = literal.value
    return str(int(value) if value == int(value) else value)


def _datatype(literal: Literal) -> Node:
    if literal.language:
        return _LANGUAGE
    return literal.datatype or URIRef(XSD + "string")


def _family(datatype: Node) -> frozenset[URIRef] | None:
    return next((each for each in _FAMILIES if datatype in each), None)


def _as(text: str, datatype: URIRef) -> Literal:
    with quiet():
        return Literal(text, datatype=datatype)


def _is_xml(text: str) -> bool:
    try:
        ElementTree.fromstring(f"<x>{text}</x>")
    except ElementTree.ParseError:
        return False
    return True
