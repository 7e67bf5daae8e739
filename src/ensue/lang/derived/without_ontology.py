"""A checked library with its concept terms replaced, so that it runs without the ontology.

In comes a library that is bound to an ontology; out goes one with the same meaning as long as the
ontology does not change: concept terms become tests of texts. For an attribute that is declared as
text the test is `IN`, which every engine translates; for others it is `HAS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ensue.events.types import TypeSystem
from ensue.lang.checked import CheckedLibrary
from ensue.lang.checking.names import CONTEXT_ATTRIBUTES
from ensue.lang.expressions.binding import plain
from ensue.lang.expressions.tree import Name
from ensue.lang.syntax import (
    EclCorrelation,
    EventPort,
    EventTypeDeclaration,
    FilterCorrelation,
    LibraryTree,
)


def plain_library(library: CheckedLibrary) -> CheckedLibrary:
    """The library with sets of texts in place of bound terms; itself where it has no ontology."""
    if library.ontology is None:
        return library
    definitions = []
    for each in library.tree.definitions:
        if isinstance(each, EventTypeDeclaration):
            each = plain(each, _is_text(library.types, [each.wire_name]))
        elif isinstance(each, FilterCorrelation | EclCorrelation):
            ports = tuple(
                plain(port, _is_text(library.types, [port.type]))
                if isinstance(port, EventPort)
                else port
                for port in each.ports
            )
            types = [port.type for port in each.ports if isinstance(port, EventPort)]
            each = plain(replace(each, ports=ports), _is_text(library.types, types))
        definitions.append(each)
    return replace(library, tree=LibraryTree(tuple(definitions)), written=None, ontology=None)


def _is_text(types: TypeSystem, read: Sequence[str]) -> Callable[[Name], bool]:
    def is_text(name: Name) -> bool:
        if len(name.parts) > 1:
            return False
        (part,) = name.parts
        if part in CONTEXT_ATTRIBUTES:
            return CONTEXT_ATTRIBUTES[part].kind == "string"
        declared = [dict(types.attributes(each)).get(part) for each in read]
        return all(each is not None and each.kind == "string" for each in declared)

    return is_text
