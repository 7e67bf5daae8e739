"""Events in Arrow tables and in Parquet files."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import EventError, UsageError
from ensue.events.arrow import events_of, table_of
from ensue.events.event import RESERVED, Event, Rejected
from ensue.events.records.reading import read_events
from ensue.events.types import Attribute, EventType, TypeSystem

from .vocabulary import (
    NOTIFY,
    exactly,
    instants,
    json_values,
    names,
    texts,
    types_from,
    value_types,
    values_of,
)

# Arrow hands names over as C strings, which end at the first NUL.
columns = names.filter(lambda name: "\0" not in name)
AT = datetime(1970, 1, 1, 0, 0, 1, 500_000)


@st.composite
def typed_streams(draw: st.DrawFn) -> tuple[TypeSystem, list[Event]]:
    """Some types and events of them; some have data that nobody declared."""
    declared = draw(st.dictionaries(columns, value_types, min_size=1, max_size=4))
    child = {
        f"{name}+": type_
        for name, type_ in draw(st.dictionaries(columns, value_types, max_size=2)).items()
    }
    types = TypeSystem.of(
        EventType("T", None, tuple(Attribute(*each) for each in declared.items())),
        EventType("U", "T", tuple(Attribute(*each) for each in child.items())),
    )
    stream = []
    for number in range(draw(st.integers(0, 4))):
        type_name = draw(st.sampled_from(["T", "U", "Unknown"]))
        attributes = types.attributes(type_name)
        data: Any = {name: draw(st.none() | values_of(t)) for name, t in attributes.items()}
        if type_name == "Unknown":
            data = draw(json_values.filter(lambda value: value != {}))
        elif draw(st.booleans()):
            data = {draw(names): draw(json_values), **data}
        stream.append(Event(str(number), "s", type_name, draw(instants), data))
    return types, stream


@given(typed_streams())
def test_events_are_read_back_from_their_table_exactly(
    case: tuple[TypeSystem, list[Event]],
) -> None:
    types, stream = case
    again = list(events_of(table_of(stream, types), types))
    assert again == stream
    assert [exactly(each.data) for each in again] == [exactly(each.data) for each in stream]


@given(st.lists(st.dictionaries(columns.filter(lambda name: name not in RESERVED), texts)))
def test_extensions_are_read_back_from_their_columns(found: list[dict[str, str]]) -> None:
    stream = [Event("1", "s", "A", 0, None, each) for each in found]
    assert list(events_of(table_of(stream, NOTIFY), NOTIFY)) == stream


def test_a_table_has_a_column_for_each_attribute_of_the_types_that_occur() -> None:
    table = table_of(
        [
            Event("1", "s", "Notify", 1_500_000, {"SourceID": 3}, {"subject": "x", "hops": 1}),
            Event("2", "s", "DataNotify", 0, {"SourceID": 3, "Value": 1.5}, {"urgent": True}),
        ],
        NOTIFY,
    )
    assert table.schema.names == (
        ["id", "source", "type", "time", "SourceID", "Value", "subject", "ce_hops", "ce_urgent"]
    )
    assert table.schema.field("time").type == pa.timestamp("us", "UTC")
    assert table.column("Value").to_pylist() == [None, 1.5]
    assert table.column("ce_urgent").to_pylist() == [None, True]


def test_what_no_column_holds_stands_as_json_in_a_column_of_its_own() -> None:
    types = types_from(T={"id": "short", "v": "short"})
    event = Event("1", "s", "T", 0, {"id": 7, "v": 8, "note": [1]})
    table = table_of([event], types)
    assert json.loads(table.column("data")[0].as_py()) == {"id": 7, "note": [1]}
    assert list(events_of(table, types)) == [event]


def test_no_events_make_a_table_without_rows() -> None:
    table = table_of([], NOTIFY)
    assert table.schema.names == ["id", "source", "type", "time"]
    assert list(events_of(table, NOTIFY)) == []


def test_a_value_that_does_not_fit_never_gets_into_a_table() -> None:
    with pytest.raises(EventError, match="`SourceID`"):
        table_of([Event("1", "s", "Notify", 0, {"SourceID": 70000})], NOTIFY)


def test_an_attribute_of_two_types_has_a_column_that_is_wide_enough() -> None:
    types = types_from(
        A={"v": "short", "w": "octet", "q": "sequence<long>"},
        B={"v": "double", "w": "long", "q": "sequence<float>"},
    )
    stream = [
        Event("1", "s", "A", 0, {"v": 3, "w": 255, "q": [1, None]}),
        Event("2", "s", "B", 0, {"v": 1.5, "w": -1, "q": [0.5]}),
    ]
    table = table_of(stream, types)
    assert table.schema.field("v").type == pa.float64()
    assert table.schema.field("w").type == pa.int32()
    again = list(events_of(table, types))
    assert [exactly(each.data) for each in again] == [exactly(each.data) for each in stream]


def test_an_attribute_without_a_common_type_is_refused_with_both() -> None:
    types = types_from(A={"v": "string"}, B={"v": "long"})
    with pytest.raises(UsageError, match="`v` is `string` in `A` and `long` in `B`"):
        table_of([Event("1", "s", "A", 0, {"v": "x"}), Event("2", "s", "B", 0, {"v": 1})], types)


def test_an_extension_of_several_types_is_held_as_text() -> None:
    stream = [Event("1", "s", "A", 0, None, {"x": value}) for value in (True, 3, "y")]
    assert table_of(stream, NOTIFY).column("ce_x").to_pylist() == ["true", "3", "y"]


def rows(**given: pa.Array) -> pa.Table:
    length = len(next(iter(given.values())))
    needed = {"type": pa.array(["T"] * length), "time": pa.array([0] * length, pa.timestamp("us"))}
    return pa.table({**needed, **given})


@pytest.mark.parametrize(
    ("column", "instant"),
    [
        (pa.array([AT], pa.timestamp("us")), 1_500_000),
        (pa.array([AT.replace(tzinfo=UTC)], pa.timestamp("ms", "Europe/Berlin")), 1_500_000),
        (pa.array([1_500_000_999], pa.timestamp("ns")), 1_500_000),
        (pa.array([1], pa.timestamp("s")), 1_000_000),
        (pa.array(["1970-01-01T01:00:00+01:00"]), 0),
        (pa.array(["1970-01-01T01:00:00+01:00"]).dictionary_encode(), 0),
    ],
)
def test_a_time_may_be_a_timestamp_of_any_unit_or_text(column: pa.Array, instant: int) -> None:
    (event,) = events_of(rows(time=column), NOTIFY)
    assert event.time == instant


@pytest.mark.parametrize("column", [pa.array([1]), pa.array([date(2024, 1, 1)]), pa.array([1.5])])
def test_a_time_of_another_type_is_refused_before_any_row(column: pa.Array) -> None:
    with pytest.raises(UsageError, match="must be a timestamp of any unit, or RFC 3339 text"):
        next(events_of(rows(time=column), NOTIFY))


def test_a_time_that_no_calendar_holds_is_refused_by_its_row() -> None:
    column = pa.array([0, 2**62], pa.timestamp("us"))
    with pytest.raises(EventError, match=r"row 2: `time`: .* outside the years"):
        list(events_of(rows(time=column), NOTIFY))


@pytest.mark.parametrize(
    ("column", "data"),
    [
        (pa.array([{"a": 1, "b": None}]), {"a": 1}),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), {"a": 1}),
        (pa.array(['{"a": [null]}']), {"a": [None]}),
        (pa.array([[1, 2]]), [1, 2]),
        (pa.array([None], pa.string()), None),
        (pa.array([None]), None),
    ],
)
def test_a_column_named_data_is_a_struct_a_map_or_json_text(column: pa.Array, data: Any) -> None:
    (event,) = events_of(rows(data=column), NOTIFY)
    assert event.data == data


def test_a_null_field_of_a_struct_is_kept_where_the_type_declares_it() -> None:
    types = types_from(T={"b": "short"})
    (event,) = events_of(rows(data=pa.array([{"a": None, "b": None}])), types)
    assert event.data == {"b": None}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (pa.array([AT], pa.timestamp("ns")), AT.replace(tzinfo=UTC)),
        (pa.array([[AT]], pa.list_(pa.timestamp("ms"))), [AT.replace(tzinfo=UTC)]),
        (pa.array([{"at": AT}]), {"at": AT.replace(tzinfo=UTC)}),
        (pa.array([Decimal("1.50")]), 1.5),
        (pa.array([date(2024, 5, 6)]), "2024-05-06"),
        (pa.array(["x"]).dictionary_encode(), "x"),
        (pa.array([[("k", [("l", 1)])]], pa.map_(pa.string(), pa.map_(pa.string(), pa.int8()))),
         {"k": {"l": 1}}),
        (pa.array([1.5], pa.float16()), 1.5),
    ],
)  # fmt: skip
def test_every_other_column_is_an_attribute_in_plain_values(column: pa.Array, value: Any) -> None:
    (event,) = events_of(rows(v=column), NOTIFY)
    assert exactly(event.data) == exactly({"v": value})


def test_a_whole_number_in_a_column_of_reals_fits_an_integer() -> None:
    types = types_from(T={"v": "short"})
    (event,) = events_of(rows(v=pa.array([3.0])), types)
    assert exactly(event.data) == exactly({"v": 3})
    with pytest.raises(EventError, match=r"`v` of `T`: 3\.5 was given"):
        list(events_of(rows(v=pa.array([3.5])), types))


def test_a_column_that_no_event_can_hold_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="the column `v` of the table is `binary`"):
        list(events_of(rows(v=pa.array([b"x"])), NOTIFY))


def test_a_number_may_be_an_id() -> None:
    (event,) = events_of(rows(id=pa.array([17])), NOTIFY)
    assert event.id == "17"


def test_an_extension_of_a_wrong_type_is_refused_by_its_row() -> None:
    with pytest.raises(EventError, match="row 1: the extension `x` must be a string"):
        list(events_of(rows(ce_x=pa.array([1.5])), NOTIFY))


def test_what_gives_no_arrow_stream_is_refused() -> None:
    with pytest.raises(UsageError, match="a `list` gives no Arrow stream"):
        list(events_of([1], NOTIFY))


def test_a_parquet_file_is_read_with_row_numbers_names_and_progress(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    types = types_from(T={"v": "short"})
    values = pa.array([1, 70_000, None] * 10_000)
    pq.write_table(rows(v=values), path, row_group_size=7_000)
    told: list[tuple[int, int | None]] = []
    records = list(read_events(path, types, progress=lambda *each: told.append(each)))
    assert len(records) == 30_000
    assert records[0] == Event("log.parquet:1", "log.parquet", "T", 0, {"v": 1})
    rejected = records[-2]
    assert isinstance(rejected, Rejected)
    assert rejected.number == 29_999
    assert json.loads(rejected.raw) == {"type": "T", "time": "1970-01-01T00:00:00Z", "v": 70_000}
    assert told == sorted(told)
    assert told[-1] == (path.stat().st_size, path.stat().st_size)


def test_a_directory_is_read_as_its_parquet_files_in_the_order_of_their_names(
    tmp_path: Path,
) -> None:
    for name, value in [("b", 2), ("a", 1), ("_c", 3)]:
        pq.write_table(rows(v=pa.array([value])), tmp_path / f"{name}.parquet")
    records = list(read_events(tmp_path, NOTIFY))
    assert [(e.id, e.source, e.data) for e in records if isinstance(e, Event)] == [
        ("a.parquet:1", "a.parquet", {"v": 1}),
        ("b.parquet:1", "b.parquet", {"v": 2}),
    ]


def test_a_refused_row_of_many_files_has_its_own_file_and_its_number_there(tmp_path: Path) -> None:
    types = types_from(T={"v": "short"})
    for name in ("a", "b"):
        pq.write_table(rows(v=pa.array([1, 70_000])), tmp_path / f"{name}.parquet")

    records = list(read_events(tmp_path, types))

    assert [(e.number, e.file) for e in records if isinstance(e, Rejected)] == [
        (2, str(tmp_path / "a.parquet")),
        (2, str(tmp_path / "b.parquet")),
    ]
    assert [e.id for e in records if isinstance(e, Event)] == ["a.parquet:1", "b.parquet:1"]


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_files_and_streams_are_read_as_parquet_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.arrow"
    table = rows(v=pa.array([1, 2]))
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as file, make(file, table.schema) as writer:
        writer.write_table(table)

    assert list(read_events(path, NOTIFY)) == [
        Event("log.arrow:1", "log.arrow", "T", 0, {"v": 1}),
        Event("log.arrow:2", "log.arrow", "T", 0, {"v": 2}),
    ]


def test_arrow_that_breaks_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.arrow"
    path.write_bytes(b"ARROW1\0\0 and nothing more")

    with pytest.raises(UsageError, match=r"`log\.arrow` cannot be read as Arrow"):
        list(read_events(path, NOTIFY))


def test_a_directory_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no file of events"):
        read_events(tmp_path, NOTIFY)


def test_parquet_may_come_through_a_pipe() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    content = io.BytesIO()
    pq.write_table(rows(v=pa.array([1])), content)
    (event,) = read_events(Pipe(content.getvalue()), NOTIFY, "parquet", name="pipe")
    assert event == Event("pipe:1", "pipe", "T", 0, {"v": 1})


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"no parquet at all, but long enough to look at"]
)
def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"`log\.parquet` cannot be read as Parquet"):
        list(read_events(path, NOTIFY))


def test_a_parquet_file_without_rows_must_still_have_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"kind": pa.array([], pa.string())}), path)
    with pytest.raises(UsageError, match=r"`log\.parquet` has no column `type` and"):
        list(read_events(path, NOTIFY))
