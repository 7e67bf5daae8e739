"""Rows of a table by a mapping: whichever way they are read, they are the same events."""

from __future__ import annotations

from typing import Any

import pytest

from ensue.errors import EventError
from ensue.events.cloudevents import event_of
from ensue.events.columns import convert_text
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.mapping import Mapping, apply_row
from ensue.events.mapping.rows import row_reader
from tests.events.vocabulary import types_from

NAMES = ["when", "kind", "id", "source", "ce_shop", "subject", "speed", "note", "other"]
ROW = ["2024-05-06T07:08:09Z", "T", "7", "s", "x", "about", "5", "n", "o"]
MAPPINGS = [
    "time=when,type=kind",
    "time=when,type=kind,speed=other",
    "time=when,type=kind,id=speed,fast=speed",
    "time=when,type=kind,note=note,source=other",
    "time=when,type=kind,ce_more=note",
]
CHANGED: list[dict[str, Any]] = [
    {},
    {"id": None, "source": None},
    {"other": None, "note": None},
    {"speed": "fast"},
    {"speed": None},
    {"speed": "1e3"},
    {"speed": "5.0"},
    {"when": "2024-05-06"},
    {"when": None},
    {"when": "2024-05-06 07:08"},
    {"kind": None},
    {"kind": "unknown", "speed": "5"},
    {"subject": None, "ce_shop": None},
    {"id": ""},
]


TYPES = types_from(T={"speed": "long", "note": "string"})


def _read(read: Any) -> Event | tuple[str, ...]:
    try:
        event: Event = read()
    except EventError as error:
        return tuple(error.problems)
    return event


@pytest.mark.parametrize("text", MAPPINGS)
@pytest.mark.parametrize("changed", CHANGED)
def test_a_row_of_renamed_columns_is_the_event_of_its_members(
    text: str, changed: dict[str, Any]
) -> None:
    mapping = Mapping.parse(text)
    row = [changed.get(name, value) for name, value in zip(NAMES, ROW, strict=True)]

    def by_members() -> Event:
        members = dict(zip(NAMES, row, strict=True))
        whole = apply_row(mapping, members, TYPES, identity="f:1", source="f", convert=convert_text)
        return conform(event_of(whole), TYPES)

    reader = row_reader(NAMES, mapping, TYPES, "f", convert_text, "`f`")
    assert _read(lambda: reader.event("f:1", row)) == _read(by_members)
