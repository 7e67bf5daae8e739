"""Events of usual objects are those that the rules for any object make of them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from ensue.errors import EventError
from ensue.events.cloudevents import decode, event_of, read_object
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.events.mapping import Mapping, apply_row
from ensue.events.records.usual_events import UsualEvents
from tests.events.files import test_agreement as rows
from tests.events.files.test_every_tenth_row import WRONG_TIMES, WRONG_VALUES

MAPPINGS = [
    None,
    Mapping.parse(timezone="Europe/Berlin"),
    Mapping.parse("id=id"),
    Mapping.parse("count=level,source=host"),
    Mapping.parse("time=began,ce_level=note", "Plain", "Europe/Berlin"),
    rows.MAPPED,
]
NAMES = ["id", "source", "type", "time", "specversion", "subject", "dataschema", "more", "data",
         "count", "level", "note", "good", "began", "ce_x", "host", "host.name", "large", "small",
         "mark", "data_base64"]  # fmt: skip
VALUES = [*WRONG_VALUES, *WRONG_TIMES, "Plain", "Reading", "Bare", "Unknown", "1.0", {"count": 7}]


def judged(text: bytes, mapping: Mapping | None) -> Event | None:
    """The event by the rules for any object; None if it is refused."""
    try:
        if mapping is None:
            return conform(decode(text), rows.TYPES)
        members = apply_row(
            mapping, read_object(text), rows.TYPES, identity="file:5", source="file"
        )
        return conform(event_of(members), rows.TYPES)
    except EventError:
        return None


def found(text: bytes, usual: UsualEvents) -> tuple[bool, Event | None]:
    """Whether an object is usual, and its event; None if its values do not fit."""
    try:
        members = read_object(text)
    except EventError:
        return False, None
    event = usual.event(members, 5)
    if event is None:
        return False, None
    try:
        return True, conform(event, rows.TYPES) if usual.has_misfit else event
    except EventError:
        return True, None


def drawn(draw: Random) -> dict[str, Any]:
    """An object with the members of an event, some of which are others."""
    data = draw.choice([{"count": 7}, {"count": 7, "level": 1.5, "note": "a"}, rows.GOOD["data"]])
    event: dict[str, Any] = {
        "id": draw.choice(["e1", 7]),
        "source": "s",
        "type": draw.choice(["Plain", "Plain", "Bare", "Other", "Unknown", "Reading"]),
        "time": draw.choice(["2024-05-06T07:08:09.5Z", "2024-05-06T07:08:09Z"]),
    }
    whole = {**event, **data} if draw.random() < 0.5 else {**event, "data": data}
    for _ in range(draw.randint(0, 3)):
        whole[draw.choice(NAMES)] = draw.choice(VALUES)
    members = list(whole.items())
    if draw.random() < 0.3:
        draw.shuffle(members)
    return dict(members)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_what_is_usual_is_what_it_is_by_the_rules(mapping: Mapping | None) -> None:
    usual = UsualEvents(rows.TYPES, "file", mapping)
    draw = Random(3)
    texts = [*rows.LINES, *(rows.line(each) for each in rows.OBJECTS)]
    texts += [json.dumps(drawn(draw)).encode() for _ in range(4_000)]
    counted = 0

    for text in texts:
        is_usual, event = found(text, usual)
        if is_usual:
            wanted = judged(text, mapping)
            assert repr(event) == repr(wanted), text
            if event is not None and wanted is not None:
                assert list(event.attributes) == list(wanted.attributes), text
                assert list(event.extensions) == list(wanted.extensions), text
            counted += 1

    # A path with dots, or a number with a unit, is for the other readers.
    assert counted > 100 or mapping is rows.MAPPED
