"""Derived attributes: names of what is worked out, put into the rules that ask for it.

In come the correlations of a library and its types, under the names that events carry; out go
copies in which the name of a derived attribute is a `DerivedName`, wherever an event is asked for
it: in predicates, keys, values, `having` and aggregates. A library without derived attributes is
returned as it is. What a history is asked for are stored publications, which have no types here, so
that temporal terms stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ensue.lang.expressions import Expression
from ensue.lang.expressions.derived_names import DerivedName, DerivedValue
from ensue.lang.expressions.evaluation import evaluate
from ensue.lang.expressions.names import CONTEXT_NAMES
from ensue.lang.expressions.rewriting import mapped
from ensue.lang.expressions.tree import (
    After,
    Before,
    BoundTerm,
    Compared,
    During,
    Name,
    Related,
)
from ensue.lang.syntax import (
    Assignment,
    CommonKey,
    Correlation,
    EclCorrelation,
    EventPort,
    EventTypeDeclaration,
    Extension,
    Holds,
    Key,
    LibraryTree,
    PortKeys,
)

Tree = TypeVar("Tree")


def derived_names(tree: LibraryTree) -> Mapping[str, DerivedName]:
    """The derived names of a library, each by its text."""
    types = {each.name: each for each in tree.types}
    names: dict[str, DerivedName] = {
        attribute.name: DerivedName.of(attribute.name, {})
        for each in tree.types
        for attribute in each.attributes
        if attribute.value is not None and attribute.name not in CONTEXT_NAMES
    }
    if not names:
        return {}
    values: dict[str, dict[str, DerivedValue]] = {name: {} for name in names}
    for each in tree.types:
        for attribute in (a for above in _lineage(each, types) for a in above.attributes):
            if attribute.value is not None and attribute.name in names:
                expression = _over_one_event(attribute.value, names)
                value = DerivedValue(expression, attribute.type, evaluate)
                values[attribute.name][each.wire_name] = value
    for name, by_type in values.items():
        names[name].values = by_type
    return names


def _lineage(
    declared: EventTypeDeclaration, types: Mapping[str, EventTypeDeclaration]
) -> list[EventTypeDeclaration]:
    found = [declared]
    while (parent := found[-1].parent) is not None:
        found.append(types[parent])
    return found


def with_derived_names(
    correlations: tuple[Correlation, ...], names: Mapping[str, DerivedName]
) -> tuple[Correlation, ...]:
    return tuple(_in_rule(each, names) for each in correlations) if names else correlations


def _in_rule(rule: Correlation, names: Mapping[str, DerivedName]) -> Correlation:
    ports = tuple(
        replace(each, where=_over_one_event(each.where, names))
        if isinstance(each, EventPort) and each.where is not None
        else each
        for each in rule.ports
    )
    by = tuple(_key(each, names) for each in rule.clauses.by)
    having = rule.clauses.having
    clauses = replace(
        rule.clauses, by=by, having=None if having is None else _over_ports(having, names)
    )
    if isinstance(rule, EclCorrelation):
        body = mapped(rule.body, lambda node: _in_holds(node, names))
        return replace(rule, ports=ports, clauses=clauses, body=body)
    return replace(
        rule,
        ports=ports,
        clauses=clauses,
        initially=mapped(rule.initially, lambda node: _in_assignment(node, names)),
        cases=mapped(rule.cases, lambda node: _in_assignment(node, names)),
    )


def _in_holds(node: Any, names: Mapping[str, DerivedName]) -> Any:
    if not isinstance(node, Holds):
        return None
    return replace(node, predicate=_over_one_event(node.predicate, names))


def _in_assignment(node: Any, names: Mapping[str, DerivedName]) -> Any:
    if not isinstance(node, Assignment | Extension):
        return None
    return replace(node, value=_over_ports(node.value, names))


def _key(key: Key, names: Mapping[str, DerivedName]) -> Key:
    if isinstance(key, CommonKey):
        return replace(key, name=names.get(key.name, key.name))
    parts = tuple((port, names.get(name, name)) for port, name in key.parts)
    return PortKeys(parts, key.span)


def _over_one_event(expression: Expression, names: Mapping[str, DerivedName]) -> Expression:
    """An expression over one event: in `where`, in `< ... >`, and of a derived attribute."""

    def named(name: Name) -> Name:
        first = names.get(name.parts[0]) if len(name.parts) == 1 else None
        return name if first is None else replace(name, parts=(first,))

    return _renamed(expression, named)


def _over_ports(expression: Expression, names: Mapping[str, DerivedName]) -> Expression:
    """An expression over the events that are bound to ports: in `having`, and of `push new`."""

    def named(name: Name) -> Name:
        last = names.get(name.parts[1]) if len(name.parts) == 2 else None
        return name if last is None else replace(name, parts=(name.parts[0], last))

    return _renamed(expression, named)


def _renamed(expression: Expression, named: Callable[[Name], Name]) -> Expression:
    def change(node: Any) -> Any:
        match node:
            case Name():
                return named(node)
            case After() | Before() | During() | Related():
                return node
            case Compared():
                return replace(node, name=named(node.name))
            case BoundTerm(term):
                return replace(node, term=replace(term, name=named(term.name)))
            case _:
                return None

    changed: Expression = mapped(expression, change)
    return changed
