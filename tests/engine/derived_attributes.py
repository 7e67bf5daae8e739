"""Libraries in which attributes are worked out that are data elsewhere."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import ensue
from ensue.events.event import Event
from ensue.events.types import ValueType
from ensue.lang.derived.parts import statements_of
from ensue.lang.expressions.text.parsing import parse_expression
from ensue.lang.expressions.values import to_string
from ensue.lang.printer import print_library
from ensue.lang.syntax import (
    AttributeDeclaration,
    EclCorrelation,
    EventTypeDeclaration,
    LibraryTree,
    PushNew,
)

CASTS = {
    "integer": "INT({})",
    "real": "DOUBLE({})",
    "boolean": "BOOL({})",
    "string": "CONCAT({}, '')",
}
STRING = ValueType("string")


def derived(library: ensue.Library, random: Random) -> tuple[ensue.Library, dict[str, set[str]]]:
    """The library with some attributes worked out from texts, and which ones on each type."""
    checked = library.checked
    made = {
        above
        for rule in checked.correlations
        for kind in (
            [each.type for each in statements_of(rule) if isinstance(each, PushNew)]
            if not isinstance(rule, EclCorrelation)
            else list(checked.types.subtypes(rule.output))
        )
        for above in checked.types.lineage(kind)
    }
    definitions: list[Any] = []
    changed: dict[str, set[str]] = {}
    for each in checked.tree.definitions:
        if isinstance(each, EventTypeDeclaration) and each.wire_name not in made:
            attributes: list[AttributeDeclaration] = []
            for attribute in each.attributes:
                cast = CASTS.get(attribute.type.kind)
                if cast is None or "." in attribute.name or random.random() < 0.3:
                    attributes.append(attribute)
                    continue
                raw = f"{attribute.name}_raw"
                value = parse_expression(cast.format(raw))
                attributes += [AttributeDeclaration(raw, STRING), replace(attribute, value=value)]
                for below in checked.types.subtypes(each.wire_name):
                    changed.setdefault(below, set()).add(attribute.name)
            each = replace(each, attributes=tuple(attributes))
        definitions.append(each)
    return ensue.parse(print_library(LibraryTree(tuple(definitions)))), changed


def with_texts(event: Event, changed: dict[str, set[str]]) -> Event:
    names = changed.get(event.type, set())
    data: dict[str, Any] = {}
    for name, value in event.attributes.items():
        if name in names:
            data[f"{name}_raw"] = None if value is None else to_string(value)
        else:
            data[name] = value
    return Event(event.id, event.source, event.type, event.time, data, event.extensions)
