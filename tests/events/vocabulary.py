"""Types and strategies that the tests of this room share."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from ensue.events.event import RESERVED, Event
from ensue.events.times import EARLIEST, LATEST
from ensue.events.types import INTEGER_RANGES, SCALARS, Attribute, EventType, TypeSystem, ValueType


def types_from(**declared: dict[str, str]) -> TypeSystem:
    """`types_from(Reading={"value": "float"})`: types without parents, attributes by text."""
    return TypeSystem.of(
        *(
            EventType(
                name,
                None,
                tuple(Attribute(each, ValueType.of(text)) for each, text in attributes.items()),
            )
            for name, attributes in declared.items()
        )
    )


NOTIFY = TypeSystem.of(
    EventType("Notify", None, (Attribute("SourceID", ValueType("short")),)),
    EventType("DataNotify", "Notify", (Attribute("Value", ValueType("float")),)),
    EventType("Bare"),
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = texts.filter(bool)
instants = st.integers(EARLIEST, LATEST)
finite = st.floats(allow_nan=False, allow_infinity=False)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | finite | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
extensions = st.dictionaries(
    names.filter(lambda name: name not in RESERVED),
    texts | st.booleans() | st.integers(-(2**63), 2**63 - 1),
    max_size=3,
).filter(
    lambda found: all(
        isinstance(found.get(name, ""), str)
        for name in ("subject", "datacontenttype", "dataschema")
    )
)
events = st.builds(Event, names, names, names, instants, json_values, extensions)

value_types: st.SearchStrategy[ValueType] = st.recursive(
    st.sampled_from(sorted(SCALARS)).map(ValueType),
    lambda inner: inner.map(lambda element: ValueType("sequence", element)),
    max_leaves=2,
)


def values_of(type_: ValueType) -> st.SearchStrategy[Any]:
    """Values that fit a type and are in normal form already."""
    if type_.element:
        return st.lists(st.none() | values_of(type_.element), max_size=3)
    if type_.name in INTEGER_RANGES:
        return st.integers(*INTEGER_RANGES[type_.name])
    by_name: dict[str, st.SearchStrategy[Any]] = {
        "float": st.floats(width=32, allow_nan=False, allow_infinity=False)
        | st.floats(-1e38, 1e38),
        "double": finite,
        "boolean": st.booleans(),
        "char": st.characters(exclude_categories=["Cs"]),
        "string": texts,
        "timestamp": st.datetimes(timezones=st.just(UTC)),
    }
    return by_name[type_.name]


def exactly(value: Any) -> Any:
    """Something that is equal only for values of the same Python types, zeros by their sign."""
    if isinstance(value, dict):
        return {name: exactly(each) for name, each in value.items()}
    if isinstance(value, list):
        return [exactly(each) for each in value]
    if isinstance(value, float):
        return ("float", value, math.copysign(1, value))
    if isinstance(value, datetime):
        return (value.utcoffset(), value)
    return (type(value).__name__, value)
