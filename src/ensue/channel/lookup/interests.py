"""The plain wants behind groups and correlations, from which look-ups are built.

A group needs the events of its parts; a correlation needs the events that its ports read.
`ensue.library` is imported only if a correlation is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ensue.channel.lookup.wants import AllOf, AnyOf, Correlated, EventWant, Wants

if TYPE_CHECKING:
    from ensue.library import Library


def interests(wants: Wants) -> Iterator[EventWant]:
    """The wants by type, source and predicate that groups and correlations consist of."""
    match wants:
        case EventWant():
            yield wants
        case AnyOf(parts) | AllOf(parts):
            for part in parts:
                yield from interests(part)
        case Correlated():
            yield from _ports(wants)


def selected_library(wanted: Correlated) -> Library:
    """The library with only the named correlation, or the whole library without a name."""
    if wanted.name is None:
        return wanted.library
    from ensue.lang.checked import CheckedLibrary
    from ensue.lang.syntax import LibraryTree
    from ensue.library import Library

    checked = wanted.library.checked
    one = next(each for each in checked.tree.correlations if each.name == wanted.name)
    tree = LibraryTree((*checked.tree.types, one))
    return Library(CheckedLibrary(tree, checked.types))


def _ports(wanted: Correlated) -> Iterator[EventWant]:
    """The events that the ports of the correlations read."""
    from ensue.lang.syntax import EventPort

    for correlation in selected_library(wanted).correlations:
        for port in correlation.ports:
            if isinstance(port, EventPort):
                yield EventWant(port.type, port.source, port.where)
