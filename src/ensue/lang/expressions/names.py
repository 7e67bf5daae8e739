"""The names that an expression mentions, as their parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from ensue.lang.expressions.derived_names import derived_name
from ensue.lang.expressions.nesting import parts_of
from ensue.lang.expressions.tree import (
    After,
    Before,
    BoundTerm,
    Compared,
    During,
    Expression,
    Has,
    IsA,
    Name,
    OntologyProperty,
    Related,
    SameAs,
    Subsumes,
)

Parts = tuple[str, ...]
"""A dotted name, part by part."""


def names_in(expression: Expression) -> Iterator[Parts]:
    """The names that are read from the event itself, from left to right; some may be repeated.

    A filter inside a temporal term reads stored publications, so its names are not among them.
    """
    waiting = [expression]
    while waiting:
        match current := waiting.pop():
            case Name(parts):
                yield parts
            case After() | Before() | During() | Related():
                continue
            case (
                Has()
                | Compared()
                | IsA()
                | Subsumes()
                | SameAs()
                | OntologyProperty()
                | BoundTerm()
            ):
                yield current.name.parts
            case _:
                waiting.extend(reversed(parts_of(current)))


CONTEXT_NAMES: Final = frozenset(
    {"datacontenttype", "dataschema", "id", "source", "specversion", "subject", "time", "type"}
)
"""The attributes of every CloudEvent; what an event calls by these names are they."""


def read_from(parts: Parts, types: Collection[str]) -> Iterator[Parts]:
    """The names that are read from events of these types for the value of a name.

    That is the name itself, and for a derived one the names of its expression; its own name too
    where it is no derived name of one of the types.
    """
    waiting, seen = [parts], {parts}
    while waiting:
        current = waiting.pop()
        derived = derived_name(current)
        if derived is None or not derived.values.keys() >= set(types):
            yield current
        for value in derived.values.values() if derived is not None else ():
            more = [each for each in names_in(value.expression) if each not in seen]
            seen.update(more)
            waiting += more


def is_time(name: Parts) -> bool:
    """Whether a name is that of an event's time, which a timer has too."""
    return len(name) == 1 and name[0].lower() == "time"
