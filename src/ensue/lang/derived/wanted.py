"""The event types and keys that the rules of a library read from their input.

In come a checked library and the structure of the input; out go the event types that some rule
reads, and sentences about keys that have no single value. Whether one event matches a port is
decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ensue.lang.checked import CheckedLibrary
from ensue.lang.syntax import CommonKey, Correlation, EventPort

Inside = Callable[[str], Sequence[str] | None]
"""For the name of an attribute that holds a struct or a list, the names inside of it, of which a
list has none; None for any other attribute."""


def types_read(library: CheckedLibrary) -> frozenset[str]:
    """The types that some port reads, with their subtypes."""
    types = library.types
    ports = {port.type for each in library.correlations for port in _event_ports(each)}
    return frozenset(name for port in ports for name in types.subtypes(port))


def unusable_keys(library: CheckedLibrary, inside: Inside) -> Iterator[tuple[str, str]]:
    """The rules whose key has no single value, each with a sentence about it."""
    for rule in library.correlations:
        for name in dict.fromkeys(_key_names(rule)):
            found = inside(name)
            if found is None:
                continue
            if found:
                advice = f"write `by {name}.{found[0]}`, or another of its values"
                what = f"a struct of {', '.join(f'`{each}`' for each in found[:5])}"
            else:
                advice, what = "choose an attribute that holds one value", "a list"
            yield rule.name, f"`{rule.name}` is `by {name}`, which is {what}, and no key: {advice}"


def _key_names(rule: Correlation) -> Iterator[str]:
    for key in rule.clauses.by:
        if isinstance(key, CommonKey):
            yield key.name
        else:
            yield from (name for _, name in key.parts)


def _event_ports(rule: Correlation) -> Iterator[EventPort]:
    return (port for port in rule.ports if isinstance(port, EventPort))
