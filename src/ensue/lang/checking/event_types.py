"""Checks the declarations of event types, and turns them into a `TypeForest`.

Reports types and attributes that are declared twice, parents that do not exist or form a circle,
and names that a CloudEvents attribute hides. A type with such a mistake is marked as open, so that
one mistake here does not cause fifty further ones below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ensue.events.types import Attribute, DerivedAttribute, EventType
from ensue.lang.checking.derived_attributes import check_derived_attributes
from ensue.lang.checking.names import CONTEXT_ATTRIBUTES
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.checking.type_forest import TypeForest
from ensue.lang.diagnostics import Diagnostics
from ensue.lang.expressions.text.printing import print_expression
from ensue.lang.limits import DEFAULT_LIMITS, report_limit
from ensue.lang.syntax import AttributeDeclaration, EventTypeDeclaration


def check_event_types(
    declarations: Iterable[EventTypeDeclaration], diagnostics: Diagnostics
) -> LibraryScope:
    """Report every mistake in the declarations, and return the scope for all further checks."""
    scope = LibraryScope(diagnostics, TypeForest({}))
    declared = _without_duplicates(declarations, scope)
    unread = _unread(declared, diagnostics)
    declared.update(unread)
    broken = unread.keys() | _unknown_parents(declared, scope) | _circles(declared, scope)
    attributes = {each.name: _attributes(each, scope) for each in declared.values()}
    types = {
        each.name: EventType(
            each.name,
            None if each.name in broken else each.parent,
            tuple(Attribute(a.name, a.type) for a in attributes[each.name] if a.value is None),
            tuple(
                DerivedAttribute(a.name, a.type, print_expression(a.value))
                for a in attributes[each.name]
                if a.value is not None
            ),
        )
        for each in declared.values()
    }
    scope.types = TypeForest(types, broken)
    _report_levels(scope.types, declared, diagnostics)
    _report_redeclared(scope, attributes)
    _report_nested(scope, attributes)
    _check_wire_names(declared, scope)
    check_derived_attributes(declared.values(), scope)
    return scope


_DECLARATION = re.compile(r"\beventtype\s+([A-Za-z_][A-Za-z0-9_]*)")


def _unread(
    declared: Mapping[str, EventTypeDeclaration], diagnostics: Diagnostics
) -> dict[str, EventTypeDeclaration]:
    """Types whose declaration has a syntax error: they exist, but nothing else is known."""
    if not diagnostics.has_errors:
        return {}
    names = {each[1] for each in _DECLARATION.finditer(diagnostics.source.text)}
    return {name: EventTypeDeclaration(name) for name in sorted(names - declared.keys())}


def _without_duplicates(
    declarations: Iterable[EventTypeDeclaration], scope: LibraryScope
) -> dict[str, EventTypeDeclaration]:
    declared: dict[str, EventTypeDeclaration] = {}
    for each in declarations:
        first = declared.setdefault(each.name, each)
        if first is not each:
            scope.error(
                "duplicate-type",
                f"event type `{each.name}` is declared twice",
                each.span,
                f"the first one is at {scope.place(first.span)}; rename or remove one of them",
            )
    return declared


def _unknown_parents(declared: Mapping[str, EventTypeDeclaration], scope: LibraryScope) -> set[str]:
    broken: set[str] = set()
    for each in declared.values():
        if each.parent is not None and each.parent not in declared:
            broken.add(each.name)
            others = declared.keys() - {each.name}
            hint = scope.hint(each.parent, others)
            if not others:
                hint = f"declare it: `eventtype {each.parent} {{}};`"
            message = f"there is no event type `{each.parent}` to inherit from"
            scope.error("unknown-type", message, each.parent_span, hint)
    return broken


def _circles(declared: Mapping[str, EventTypeDeclaration], scope: LibraryScope) -> set[str]:
    """One type of each circle, which is then treated as if it had no parent."""
    cut: set[str] = set()
    settled: set[str] = set()
    order = {name: index for index, name in enumerate(declared)}
    for start in declared:
        trail: dict[str, None] = {}
        current: str | None = start
        while current is not None and current in declared:
            if current in settled or current in trail:
                break
            trail[current] = None
            current = declared[current].parent
        if current is not None and current in trail:
            names = list(trail)
            circle = names[names.index(current) :]
            first = circle.index(min(circle, key=order.__getitem__))
            path = [*circle[first:], *circle[:first]]
            cut.add(path[0])
            scope.error(
                "circular-inheritance",
                f"event type `{path[0]}` inherits from itself: {' -> '.join([*path, path[0]])}",
                declared[path[0]].parent_span,
                "let one of them inherit from nothing, or from a type outside of the circle",
            )
        settled.update(trail)
    return cut


def _report_levels(
    types: TypeForest, declared: Mapping[str, EventTypeDeclaration], diagnostics: Diagnostics
) -> None:
    """Report the first type with too many levels above it, and the largest number of levels."""
    allowed = DEFAULT_LIMITS.levels
    levels = types.levels()
    beyond = [declared[name] for name, level in levels.items() if level == allowed + 1]
    if beyond:
        deepest = max(levels.values())
        report_limit(diagnostics, DEFAULT_LIMITS, "levels", deepest, beyond[0].parent_span)


def _attributes(
    declaration: EventTypeDeclaration, scope: LibraryScope
) -> list[AttributeDeclaration]:
    kept: dict[str, AttributeDeclaration] = {}
    for each in declaration.attributes:
        first = kept.setdefault(each.name, each)
        if first is not each:
            scope.error(
                "duplicate-attribute",
                f"event type `{declaration.name}` declares attribute `{each.name}` twice",
                each.span,
                f"the first one is at {scope.place(first.span)}; rename or remove one of them",
            )
        elif each.name in CONTEXT_ATTRIBUTES:
            scope.warning(
                "hidden-attribute",
                f"attribute `{each.name}` is hidden by the CloudEvents attribute of that name",
                each.span,
                f"predicates, keys and values that say `{each.name}` find that one; rename yours",
            )
    return list(kept.values())


def _report_nested(
    scope: LibraryScope, attributes: Mapping[str, Iterable[AttributeDeclaration]]
) -> None:
    """Report an attribute inside of another attribute that is no nested data."""
    if not any("." in each.name for declared in attributes.values() for each in declared):
        return
    for type_name, declared in attributes.items():
        known = scope.types.attributes(type_name)
        outer = {name for each in known for name in _around(each) if name in known}
        own = {each.name for each in declared}
        for each in declared:
            # The attribute of the lower type is reported, whichever of the two is around the other.
            around = next((name for name in _around(each.name) if name in known), None)
            inside = next((n for n in known if each.name in _around(n) and n not in own), None)
            if around is None and (each.name not in outer or inside is None):
                continue
            inner, whole = (each.name, around) if around else (inside, each.name)
            scope.error(
                "attribute-inside-value",
                f"attribute `{inner}` would stand inside of `{whole}`, "
                f"which is a `{known[str(whole)]}`",
                each.span,
                f"declare what stands in `{whole}` by parts only, or rename one of them",
            )


def _around(name: str) -> list[str]:
    """`a` and `a.b` for `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _check_wire_names(declared: Mapping[str, EventTypeDeclaration], scope: LibraryScope) -> None:
    named: dict[str, EventTypeDeclaration] = {}
    for each in declared.values():
        if each.wire == "":
            scope.error(
                "bad-wire-name",
                f"the events of `{each.name}` are given an empty name",
                each.wire_span,
                "write the `type` that they carry",
            )
        first = named.setdefault(each.wire_name, each)
        if first is not each:
            place = each if each.wire is not None else first
            other = first if place is each else each
            scope.error(
                "duplicate-wire-name",
                f"events of `{place.name}` and of `{other.name}` would both carry the type "
                f"`{each.wire_name}`",
                place.wire_span,
                "a name on the wire belongs to one type: change one of them",
            )


def _report_redeclared(
    scope: LibraryScope, attributes: Mapping[str, Iterable[AttributeDeclaration]]
) -> None:
    for type_name, name, ancestor in scope.types.redeclared():
        span = next(each.span for each in attributes[type_name] if each.name == name)
        scope.error(
            "redeclared-attribute",
            f"event type `{type_name}` has attribute `{name}` from `{ancestor}` already",
            span,
            "remove it here, or give it another name",
        )
