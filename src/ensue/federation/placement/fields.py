"""Which fields of an event travel to the home of a rule: only the fields that are read there.

Ports and predicates are judged where an event arises. At the home are read: the key, the values of
`push new`, conditions of `having`, predicates inside of an ECL expression, and of `push a` the
whole event. In comes a rule; out go, for each port, the names that are read of its events, or
`WHOLE`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ensue.events.conformance import conform_value, with_whole_numbers
from ensue.events.event import Event
from ensue.events.nesting import value_at, with_values
from ensue.events.types import TypeSystem
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.derived.parts import values_in
from ensue.lang.expressions import Expression
from ensue.lang.expressions.derived_names import path_to
from ensue.lang.expressions.names import Parts, names_in, read_from
from ensue.lang.syntax import (
    CommonKey,
    Correlation,
    EclCorrelation,
    EventPort,
    Holds,
    PushPort,
)

Fields = frozenset[str] | None
"""Names of members of `data`, or of extensions; None for the whole event."""

WHOLE: Fields = None


def fields_of(correlation: Correlation) -> dict[str, Fields]:
    """For each event port the fields that its events have to bring to the home."""
    types = {port.name: port.type for port in correlation.ports if isinstance(port, EventPort)}
    found: dict[str, set[str]] = {
        name: _members(_key_names(correlation, name), [type_]) for name, type_ in types.items()
    }
    if isinstance(correlation, EclCorrelation):
        asked = [
            name
            for part in expressions_in(correlation.body)
            if isinstance(part, Holds)
            for name in names_in(part.predicate)
        ]
        read = _members(asked, set(types.values()))
        return {port: frozenset(names | read) for port, names in found.items()}
    statements = [s for case in correlation.cases for s in case.statements]
    for expression in _read(correlation.clauses.having, statements):
        for name in names_in(expression):
            port, *rest = name
            if rest and port in found:
                found[port] |= _members([tuple(rest)], [types[port]])
    sent_on = {each.port for each in statements if isinstance(each, PushPort)}
    return {port: WHOLE if port in sent_on else frozenset(names) for port, names in found.items()}


def joined(fields: Iterable[Fields]) -> Fields:
    """The fields that any of several readers reads."""
    names: set[str] = set()
    for each in fields:
        if each is None:
            return WHOLE
        names |= each
    return frozenset(names)


def projected(event: Event, fields: Fields) -> Event:
    """The event with these fields alone. What says which event it is always stays."""
    if fields is None:
        return event
    data = event.data
    if isinstance(data, Mapping):
        data = {name: value for name, value in data.items() if name in fields}
    lowered = {name.lower() for name in fields}
    extensions = {
        name: value for name, value in event.extensions.items() if name in fields or name in lowered
    }
    return msgspec.structs.replace(event, data=data or None, extensions=extensions)


def restored(event: Event, types: TypeSystem) -> Event:
    """An event that came as JSON with values as engines hold them; fields may be missing."""
    if event.type not in types.types or not isinstance(event.data, Mapping):
        return event
    changed: dict[str, Any] = {}
    for name, type_ in types.attributes(event.type).items():
        is_there, value = value_at(event.data, name)
        if is_there and value is not None:
            held = conform_value(with_whole_numbers(value, type_), type_)
            if held is not value:
                changed[name] = held
    if not changed:
        return event
    return msgspec.structs.replace(event, data=with_values(event.data, changed))


def _members(names: Iterable[Parts], types: Collection[str]) -> set[str]:
    """The members of events of these types that are read for the values of names."""
    return {parts[0] for name in names for parts in read_from(name, types)}


def _key_names(correlation: Correlation, port: str) -> Iterator[Parts]:
    for key in correlation.clauses.by:
        yield path_to(key.name if isinstance(key, CommonKey) else dict(key.parts)[port])


def _read(having: Expression | None, statements: Iterable[Any]) -> Iterator[Expression]:
    if having is not None:
        yield having
    yield from values_in(statements)
