"""A derived attribute behaves as data of the same value, in every engine."""

from __future__ import annotations

import json
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
from tests.oracle import generator
from tests.oracle.values import generator as values_generator

from .derived_attributes import derived, with_texts


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
