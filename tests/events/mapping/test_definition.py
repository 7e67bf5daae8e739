"""How a mapping is written, and what is refused."""

from __future__ import annotations

import pytest

from ensue.errors import UsageError
from ensue.events.mapping import Mapping, Origin


def test_text_and_dictionary_say_the_same() -> None:
    text = Mapping.parse("time=ts:ms, type=event_name,user=actor.name")
    assert text == Mapping.of({"time": "ts:ms", "type": "event_name", "user": "actor.name"})
    assert text.columns["time"] == Origin("ts", "ms")
    assert text.columns["user"] == Origin("actor.name")


def test_a_column_with_an_odd_name_is_given_as_a_table() -> None:
    found = Mapping.of({"time": {"column": "a,b:ms", "unit": "s"}})
    assert found.columns["time"] == Origin("a,b:ms", "s")


def test_nothing_said_is_the_default() -> None:
    assert Mapping().is_default
    assert Mapping.parse("").is_default
    assert Mapping.of({}) == Mapping.parse(None)
    assert not Mapping.parse(None, timezone="UTC").is_default
    assert not Mapping.parse(None, timezone="UTC").is_plain
    assert Mapping.parse(None, type="Tick").is_plain


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        Mapping.parse("time,id=a,id=b,source=c:ms", type="", timezone="Europe/Nowhere")
    told = str(caught.value)
    assert "`time` does not say which column is what" in told
    assert "`id` is given twice" in told
    assert "`source` is no time: leave out the unit `ms`" in told
    assert "the type of all events is empty" in told
    assert "there is no time zone `Europe/Nowhere`" in told


def test_a_type_is_said_once() -> None:
    with pytest.raises(UsageError, match="the type is said twice"):
        Mapping.parse("type=kind", type="Tick")


def test_an_extension_cannot_take_the_place_of_an_attribute() -> None:
    with pytest.raises(UsageError, match="`id` is no extension: write `id=uuid`"):
        Mapping.parse("ce_id=uuid")
