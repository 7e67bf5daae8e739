"""A derived attribute behaves as data of the same value, in every engine."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ensue
from ensue.errors import EventError
from ensue.events.arrow import table_of
from ensue.events.cloudevents import decode
from ensue.events.conformance import conform
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
from tests.oracle import generator
from tests.oracle.values import generator as values_generator

CASTS = {
    "integer": "INT({})",
    "real": "DOUBLE({})",
    "boolean": "BOOL({})",
    "string": "CONCAT({}, '')",
}
STRING = ValueType("string")


def drawn(kind: str, seed: int) -> tuple[ensue.Library, list[Event]]:
    """A random library and the events of its stream that fit it."""
    if kind == "plain":
        scenario = generator.scenario(seed)
        library, given = ensue.parse(scenario.library), scenario.events
    else:
        other = values_generator.scenario(seed)
        library = ensue.parse(str(other.model))
        given = [
            {"id": e.id, "source": e.source, "type": e.type, "time": e.time, "data": dict(e.data)}
            for e in other.events
        ]
    events = []
    for members in given:
        try:
            if isinstance(members["time"], int):
                at = members.pop("time")
                event = Event(time=at, **members)
            else:
                event = decode(json.dumps(members))
            events.append(conform(event, library.checked.types))
        except EventError:
            continue
    return library, sorted(events, key=lambda each: each.time)


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


def told(outputs: Any, changed: dict[str, set[str]]) -> list[Any]:
    return [
        (each.id, each.type, each.time, each.extensions, with_texts(each, changed).data)
        for each in outputs
    ]


def as_told(outputs: Any) -> list[Any]:
    return [(each.id, each.type, each.time, each.extensions, each.data) for each in outputs]


@pytest.mark.parametrize("kind", ["plain", "values"])
def test_a_derived_attribute_behaves_as_data_of_its_value(kind: str) -> None:
    """The outputs of every engine are those of the library in which it is data."""
    asked = 0
    for seed in range(60):
        library, events = drawn(kind, seed)
        other, changed = derived(library, Random(seed))
        texts = [with_texts(each, changed) for each in events]
        expected = told(library.run(events, engine="reference"), changed)
        asked += bool(changed and expected)
        for engine in ("reference", "step", "batch"):
            assert as_told(other.run(texts, engine=engine)) == expected, f"{kind} {seed} {engine}"
    assert asked > 20


@pytest.mark.filterwarnings("ignore:.*no key")
@pytest.mark.parametrize("kind", ["plain", "values"])
def test_a_derived_attribute_of_a_table_is_worked_out_in_columns(kind: str) -> None:
    """The ids of outputs are those of the library in which it is data."""
    for seed in range(60):
        library, events = drawn(kind, seed)
        other, changed = derived(library, Random(seed))
        texts = [with_texts(each, changed) for each in events]
        if not texts:
            continue
        expected = [each.id for each in library.run(events, engine="reference")]

        made = ensue.correlate(table_of(texts, other.checked.types), other)

        assert pa.table(made).column("id").to_pylist() == expected, f"{kind} {seed}"


def test_a_snapshot_moves_between_engines_with_derived_attributes() -> None:
    """Half of a stream on one engine and half on another put out what one engine puts out."""
    for seed in range(40):
        library, events = drawn("plain" if seed % 2 else "values", seed)
        other, changed = derived(library, Random(seed))
        texts = [with_texts(each, changed) for each in events]
        expected = told(library.run(events, engine="reference"), changed)
        for first, second in (("step", "batch"), ("batch", "step"), ("batch", "batch")):
            run = other.start(engine=first)
            outputs = [made for each in texts[: len(texts) // 2] for made in run.push(each)]
            try:
                run = other.resume(run.snapshot(), engine=second)
            except ensue.SnapshotError:
                continue
            outputs += [made for each in texts[len(texts) // 2 :] for made in run.push(each)]
            assert as_told(outputs) == expected, f"{seed} {first} {second}"
