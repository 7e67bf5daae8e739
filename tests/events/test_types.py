"""Declared types: text, lineage and attributes."""

from __future__ import annotations

import pickle
from random import Random

import pytest
from hypothesis import given

from ensue.events.types import EventType, TypeSystem, ValueType

from .vocabulary import NOTIFY, value_types


@given(value_types)
def test_a_type_is_read_back_from_its_text(type_: ValueType) -> None:
    assert ValueType.of(str(type_)) == type_


@pytest.mark.parametrize("text", ["", "int", "sequence", "sequence<>", "sequence<int>", "Short"])
def test_a_text_that_names_no_type_is_refused_with_those_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="unsigned long long"):
        ValueType.of(text)


def test_inherited_attributes_come_first() -> None:
    assert list(NOTIFY.attributes("DataNotify")) == ["SourceID", "Value"]


def test_a_type_that_is_not_declared_has_no_attributes() -> None:
    assert NOTIFY.attributes("Unknown") == {}


def test_a_subtype_stands_under_its_parent_and_not_the_reverse() -> None:
    assert NOTIFY.is_subtype("DataNotify", "Notify")
    assert not NOTIFY.is_subtype("Notify", "DataNotify")
    assert NOTIFY.subtypes("Notify") == ("Notify", "DataNotify")


def test_a_type_system_survives_pickling_and_is_equal_whatever_was_asked_of_it() -> None:
    fresh = pickle.loads(pickle.dumps(NOTIFY))
    NOTIFY.attributes("DataNotify")
    assert fresh == NOTIFY


def test_subtypes_are_what_has_a_type_in_its_lineage() -> None:
    """On random forests: the ranges of the walk say what climbing from parent to parent says."""
    for seed in range(50):
        random = Random(seed)
        names = [f"T{number}" for number in range(random.randint(1, 12))]
        declared = [
            EventType(
                name, random.choice(names[:number]) if number and random.random() < 0.8 else None
            )
            for number, name in enumerate(names)
        ]
        random.shuffle(declared)
        types = TypeSystem.of(*declared)
        for of in [*names, "Unknown"]:
            below = tuple(each.name for each in declared if of in types.lineage(each.name))

            assert types.subtypes(of) == below
            assert [n for n in types.types if types.is_subtype(n, of)] == list(below)


def test_a_type_that_is_not_declared_stands_under_itself_alone() -> None:
    assert NOTIFY.is_subtype("Unknown", "Unknown")
    assert not NOTIFY.is_subtype("Unknown", "Notify")
    assert not NOTIFY.is_subtype("Notify", "Unknown")
