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
    """The library with the outputs of the named correlation, or of all without a name."""
    if wanted.name is None:
        return wanted.library
    from ensue.lang.derived.part import part_of
    from ensue.library import Library

    return Library(part_of(wanted.library.checked, {wanted.name}))


def _ports(wanted: Correlated) -> Iterator[EventWant]:
    """The events that the ports of the correlations read of the channel, whatever it knows of
    their types."""
    from ensue.lang.derived.wiring import sources_asked
    from ensue.lang.syntax import EventPort

    types = wanted.library.checked.types
    for correlation in selected_library(wanted).correlations:
        for port in correlation.ports:
            if isinstance(port, EventPort):
                asked = sources_asked(port)
                for source in (None,) if asked is None else sorted(asked):
                    for type_ in types.subtypes(port.type):
                        yield EventWant(type_, source, port.where)
