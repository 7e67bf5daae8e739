"""Attribute types as Arrow fields, and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import UsageError
from ensue.events.arrow import schema_of, types_of
from ensue.events.arrow_types import field_of, value_type, widen
from ensue.events.conformance import fits
from ensue.events.types import Attribute, EventType, TypeSystem, ValueType

from .vocabulary import NOTIFY, names, value_types, values_of


@given(names, st.dictionaries(names, value_types, max_size=5))
def test_a_type_is_read_back_from_its_schema_exactly(
    name: str, attributes: dict[str, ValueType]
) -> None:
    declared = EventType(name, None, tuple(Attribute(*each) for each in attributes.items()))
    schema = schema_of(name, TypeSystem.of(declared))
    assert types_of(schema) == declared
    assert schema_of(name, TypeSystem.of(types_of(schema))).equals(schema, check_metadata=True)


def test_a_schema_holds_inherited_attributes_first() -> None:
    schema = schema_of("DataNotify", NOTIFY)
    assert schema.names == ["SourceID", "Value"]
    assert schema.field("Value").type == pa.float64()


def test_a_schema_of_an_undeclared_type_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="the declared ones are `Notify`, `DataNotify`, `Bare`"):
        schema_of("Unknown", NOTIFY)


@pytest.mark.parametrize(
    ("native", "name"),
    [
        (pa.int8(), "short"),
        (pa.uint8(), "octet"),
        (pa.int16(), "short"),
        (pa.uint16(), "unsigned short"),
        (pa.int32(), "long"),
        (pa.uint32(), "unsigned long"),
        (pa.int64(), "long long"),
        (pa.uint64(), "unsigned long long"),
        (pa.float16(), "float"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.bool_(), "boolean"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.timestamp("s", "Europe/Berlin"), "timestamp"),
        (pa.large_list(pa.int8()), "sequence<short>"),
        (pa.list_(pa.list_(pa.float32()), 2), "sequence<sequence<float>>"),
    ],
)
def test_a_field_of_others_is_read_by_its_arrow_type(native: pa.DataType, name: str) -> None:
    assert value_type(pa.field("x", native)) == ValueType.of(name)


@pytest.mark.parametrize(
    "native",
    [
        pa.date32(),
        pa.time64("us"),
        pa.duration("s"),
        pa.binary(),
        pa.null(),
        pa.struct([]),
        pa.decimal128(5, 2),
        pa.map_(pa.string(), pa.int8()),
        pa.list_(pa.date32()),
    ],
)
def test_a_field_that_stands_for_no_attribute_type_is_refused_by_name(native: pa.DataType) -> None:
    with pytest.raises(UsageError, match=r"the field `x` is .* which is no attribute type"):
        value_type(pa.field("x", native))


def test_a_column_that_was_cast_is_read_by_what_it_is_now() -> None:
    field = field_of("x", ValueType("short")).with_type(pa.int64())
    assert value_type(field) == ValueType("long long")


def test_metadata_that_names_no_type_is_refused() -> None:
    with pytest.raises(UsageError, match="the metadata of the field `x`: `int` is no attribute"):
        value_type(pa.field("x", pa.int8(), metadata={b"ensue.type": b"int"}))


def test_columns_of_cloudevents_attributes_are_no_part_of_the_type() -> None:
    table = pa.table({"id": ["1"], "time": ["x"], "ce_hops": [1], "data": ["{}"], "v": [1.5]})
    assert types_of(table, "T") == EventType("T", None, (Attribute("v", ValueType("double")),))


def test_a_schema_without_a_name_needs_one() -> None:
    with pytest.raises(UsageError, match="give the name as well"):
        types_of(pa.schema([("v", pa.int8())]))


@pytest.mark.parametrize(
    ("one", "other", "wide"),
    [
        ("short", "short", "short"),
        ("octet", "short", "short"),
        ("octet", "unsigned short", "unsigned short"),
        ("short", "unsigned short", "long"),
        ("long", "unsigned long", "long long"),
        ("long long", "unsigned long long", None),
        ("float", "double", "double"),
        ("long", "float", "double"),
        ("long long", "double", None),
        ("char", "string", "string"),
        ("string", "long", None),
        ("boolean", "octet", None),
        ("timestamp", "string", None),
        ("sequence<octet>", "sequence<long>", "sequence<long>"),
        ("sequence<octet>", "sequence<string>", None),
        ("sequence<octet>", "octet", None),
    ],
)
def test_two_types_have_a_common_one_if_it_holds_all_values_of_both(
    one: str, other: str, wide: str | None
) -> None:
    expected = None if wide is None else ValueType.of(wide)
    assert widen(ValueType.of(one), ValueType.of(other)) == expected
    assert widen(ValueType.of(other), ValueType.of(one)) == expected


@given(value_types, value_types, st.data())
def test_every_value_of_a_type_fits_the_wider_one(
    one: ValueType, other: ValueType, data: st.DataObject
) -> None:
    wide = widen(one, other)
    if wide is not None:
        assert fits(data.draw(values_of(one)), wide)
