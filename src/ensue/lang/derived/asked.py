"""The attributes of events that the rules of a library ask for.

In comes a checked library; out go, for each rule, the attributes that it reads and the types of the
events in which it reads them: in conditions, keys and values. A derived attribute stands for those
from which it is worked out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ensue.lang.checked import CheckedLibrary
from ensue.lang.checking.ecl import expressions_in
from ensue.lang.derived.parts import statements_of, values_in
from ensue.lang.expressions.names import Parts, names_in, read_from
from ensue.lang.expressions.tree import Expression
from ensue.lang.syntax import (
    CommonKey,
    Correlation,
    EclCorrelation,
    EventPort,
    Holds,
)

Asked = Mapping[str, Mapping[str, frozenset[str]]]
"""By rule and by attribute, the types of events in which the rule reads it."""


def attributes_asked(library: CheckedLibrary) -> Asked:
    """Only attributes that the types of the rules declare."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for rule in library.correlations:
        ports = {port.name: port.type for port in rule.ports if isinstance(port, EventPort)}
        asked: dict[str, set[str]] = {}
        for name, of_types in _asked(rule, ports):
            for type_ in of_types:
                asked.setdefault(name, set()).update(library.types.subtypes(type_))
        declared = {
            name: frozenset(type_ for type_ in types if name in library.types.attributes(type_))
            for name, types in asked.items()
        }
        found[rule.name] = {name: types for name, types in declared.items() if types}
    return found


def _asked(rule: Correlation, ports: Mapping[str, str]) -> Iterator[tuple[str, set[str]]]:
    every = set(ports.values())
    for key in rule.clauses.by:
        if isinstance(key, CommonKey):
            yield from _plain((key.name,), every)
        else:
            for of_port, name in key.parts:
                yield from _plain((name,), {ports[of_port]} if of_port in ports else every)
    for port in rule.ports:
        if isinstance(port, EventPort) and port.where is not None:
            for parts in names_in(port.where):
                yield from _plain(parts, {port.type})
    if isinstance(rule, EclCorrelation):
        for part in expressions_in(rule.body):
            if isinstance(part, Holds):
                for parts in names_in(part.predicate):
                    yield from _plain(parts, every)
        return
    for value in _values(rule):
        for parts in names_in(value):
            # The first part is a port.
            if parts[1:] and parts[0] in ports:
                yield from _plain(parts[1:], {ports[parts[0]]})


def _values(rule: Correlation) -> Iterator[Expression]:
    yield from values_in(statements_of(rule))
    if rule.clauses.having is not None:
        yield rule.clauses.having


def _plain(parts: Parts, types: set[str]) -> Iterator[tuple[str, set[str]]]:
    """The attributes that are read for a name."""
    yield from ((".".join(each), types) for each in read_from(parts, types))
