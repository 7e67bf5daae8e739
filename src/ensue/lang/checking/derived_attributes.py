"""Checks attributes that are worked out from others: `attribute string user = EXTRACT(...)`.

In come declarations whose types and names have been checked; reported are values that do not fit,
that ask more than their own event, that need themselves, and that would grow past the limit once
all that they need is written out. What an attribute needs is followed on each type by itself, since
a name may be worked out on one type and data on another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ensue.events.types import ValueType
from ensue.lang.checking.predicates import type_on_event
from ensue.lang.checking.scope import LibraryScope
from ensue.lang.expressions import Expression, Name
from ensue.lang.expressions.checking.fitting import check_value
from ensue.lang.expressions.names import CONTEXT_NAMES, names_in
from ensue.lang.expressions.nesting import nodes_in
from ensue.lang.expressions.tree import After, Before, Compared, During, Related
from ensue.lang.limits import DEFAULT_LIMITS, report_limit
from ensue.lang.syntax import AttributeDeclaration, EventTypeDeclaration


@dataclass(frozen=True)
class _Needs:
    """A derived attribute, and the names in its value."""

    declared: AttributeDeclaration
    names: tuple[str, ...]
    size: int


def check_derived_attributes(
    declarations: Iterable[EventTypeDeclaration], scope: LibraryScope
) -> None:
    """Report the mistakes in the values of all derived attributes."""
    by_type: dict[str, dict[str, _Needs]] = {}
    for declared in declarations:
        for attribute in declared.attributes:
            if attribute.value is None:
                continue
            _check_one(declared.name, attribute, attribute.value, scope)
            needs = tuple(parts[0] for parts in names_in(attribute.value) if len(parts) == 1)
            size = sum(1 for _ in nodes_in(attribute.value))
            own = by_type.setdefault(declared.name, {})
            own.setdefault(attribute.name, _Needs(attribute, needs, size))
    reported: set[str] = set()
    for type_name in by_type:
        known: dict[str, _Needs] = {}
        for above in scope.types.lineage(type_name):
            known = {**by_type.get(above, {}), **known}
        known = {name: each for name, each in known.items() if name not in CONTEXT_NAMES}
        circles = list(_circles(known))
        for path in circles:
            _report_circle(type_name, path, known, scope, reported)
        if not circles:
            _report_size(known, scope, reported)


def _check_one(
    type_name: str, attribute: AttributeDeclaration, value: Expression, scope: LibraryScope
) -> None:
    if "." in attribute.name:
        last = attribute.name.rpartition(".")[2]
        scope.error(
            "derived-inside-data",
            f"`{attribute.name}` is worked out, and would stand inside of data",
            attribute.span,
            f"an attribute that is worked out is no data: give it one name, such as `{last}`",
        )
    asking = next((each for each in nodes_in(value) if isinstance(each, _ASKING)), None)
    if asking is not None:
        scope.error(
            "derived-asks-more",
            f"`{attribute.name}` is worked out from its own event, and this asks a history",
            asking.span,
            "ask it in a predicate: `where ...`",
        )
        return

    def resolve(name: Name) -> ValueType | None:
        return type_on_event(scope, type_name, name)

    check_value(value, attribute.type, resolve, scope.diagnostics)
    if next(names_in(value), None) is None:
        scope.warning(
            "derived-constant",
            f"`{attribute.name}` is the same for every event, and is not read from its data",
            attribute.span,
            f"write `attribute {attribute.type} {attribute.name};` for one that events bring: an"
            " attribute has no default",
        )


_ASKING = (After, Before, During, Compared, Related)


def _circles(known: Mapping[str, _Needs]) -> Iterator[list[str]]:
    """Attributes of a type that need each other in a circle, each circle from one place on."""
    settled: set[str] = set()
    for start in known:
        trail: list[str] = []
        waiting: list[Iterator[str]] = [iter([start])]
        while waiting:
            name = next(waiting[-1], None)
            if name is None:
                waiting.pop()
                if trail:
                    settled.add(trail.pop())
            elif name in trail:
                yield [*trail[trail.index(name) :], name]
            elif name in known and name not in settled:
                trail.append(name)
                waiting.append(iter(known[name].names))


def _report_circle(
    type_name: str,
    path: list[str],
    known: Mapping[str, _Needs],
    scope: LibraryScope,
    reported: set[str],
) -> None:
    if not reported.isdisjoint(path):
        return
    reported.update(path)
    scope.error(
        "circular-attribute",
        f"attribute `{path[0]}` of `{type_name}` is worked out from itself: {' -> '.join(path)}",
        known[path[0]].declared.span,
        "let one of them be data, or work it out from data",
    )


def _report_size(known: Mapping[str, _Needs], scope: LibraryScope, reported: set[str]) -> None:
    """Report an attribute that is too large once the attributes that it needs are written out."""
    sizes: dict[str, int] = {}
    for start in known:
        waiting = [start]
        while waiting:
            each = known[waiting[-1]]
            needed = [name for name in each.names if name in known]
            unknown = [name for name in needed if name not in sizes]
            if unknown:
                waiting += unknown
                continue
            sizes[waiting.pop()] = each.size + sum(sizes[name] for name in needed)
    for name, size in sizes.items():
        if size > DEFAULT_LIMITS.derivation and name not in reported:
            reported.add(name)
            span = known[name].declared.span
            report_limit(scope.diagnostics, DEFAULT_LIMITS, "derivation", size, span)
            return
