"""Files in columns and row by row: the same events, the same refusals in the same places."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.engine.batch.input.batches import TableBatch
from ensue.engine.batch.input.intake import EventBatch, Intake
from ensue.engine.counts import Counts
from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.event import Event, Rejected
from ensue.events.files.reading import read_chunks
from ensue.events.mapping import Mapping
from ensue.events.records.reading import read_inputs
from ensue.events.sources import open_inputs
from ensue.events.types import TypeSystem
from tests.events.vocabulary import types_from

TYPES = types_from(
    Reading={
        "host.name": "string",
        "count": "short",
        "large": "unsigned long long",
        "level": "double",
        "small": "float",
        "good": "boolean",
        "note": "string",
        "mark": "char",
        "began": "timestamp",
        "seen": "sequence<long>",
    },
    Plain={"count": "long"},
    Other={"count": "string"},
    Bare={},
)

Record = Event | Rejected


def in_columns(
    path: Path, types: TypeSystem, mapping: Mapping | None, bounds: Bounds, **options: Any
) -> list[Record]:
    found: list[Record] = []
    intake = Intake(types, Counts())
    for file, chunk in read_chunks(
        open_inputs([str(path)], **options), types, mapping, bounds=bounds
    ):
        checked = intake.check(chunk)
        batch = checked.batch
        assert isinstance(batch, TableBatch | EventBatch)
        events = [batch.event(row) for row in range(len(batch))]
        places = checked.kept.tolist()
        refused = iter(
            Rejected(each.number, each.raw, each.problems, file.path) for each in checked.rejected
        )
        by_place = dict(zip(places, events, strict=True))
        found += [by_place[at] if at in by_place else next(refused) for at in range(len(chunk))]
        assert next(refused, None) is None
        assert_columns_show(batch, events)
    return found


def assert_columns_show(batch: Any, events: list[Event]) -> None:
    """What the columns say is what the events are."""
    from ensue.lang.expressions.evaluation import EventScope

    assert batch.times.tolist() == [event.time for event in events]
    names = [("id",), ("source",), ("type",), ("count",), ("level",), ("host", "name"), ("note",),
             ("began",), ("large",), ("extra",), ("Subject",), ("subject",), ("good",)]  # fmt: skip
    for name in names:
        column = batch.column(name).to_list()
        declared = (batch.type_codes >= 0).tolist()
        for value, event, is_declared in zip(column, events, declared, strict=True):
            wanted = EventScope(event).lookup(name)
            if is_declared:
                assert repr(value) == repr(wanted), (name, event)


def row_by_row(
    path: Path, types: TypeSystem, mapping: Mapping | None, bounds: Bounds, **options: Any
) -> list[Record]:
    inputs = open_inputs([str(path)], **options)
    return list(read_inputs(inputs, types, mapping=mapping, bounds=bounds))


def agree(
    path: Path,
    types: TypeSystem = TYPES,
    mapping: Mapping | None = None,
    *,
    bounds: Bounds = BOUNDS,
    **options: Any,
) -> list[Record]:
    rows = row_by_row(path, types, mapping, bounds, **options)
    columns = in_columns(path, types, mapping, bounds, **options)
    assert len(columns) == len(rows)
    for one, other in zip(columns, rows, strict=True):
        assert repr(one) == repr(other)
        # What is no number is not even equal to itself.
        assert one == other or "nan" in repr(one)
    return rows


GOOD: dict[str, Any] = {
    "id": "e1", "source": "s", "type": "Reading", "time": "2024-05-06T07:08:09.5Z",
    "data": {
        "host": {"name": "web"}, "count": 7, "large": 12, "level": 1.25, "small": 3, "good": True,
        "note": "a", "mark": "x", "began": "2024-05-06 09:08:09+02:00", "seen": None,
    },
}  # fmt: skip


def with_data(**changed: Any) -> dict[str, Any]:
    return {**GOOD, "data": {**GOOD["data"], **changed}}


def line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


LINES: list[bytes] = [
    *[line(GOOD)] * 3,
    line({**GOOD, "time": "2024-05-06 07:08:09"}),
    line({**GOOD, "time": "2024-05-06 07:08:09Z"}),
    line({**GOOD, "time": "2016-12-31T23:59:60Z"}),
    line({**GOOD, "time": 5}),
    line({k: v for k, v in GOOD.items() if k != "time"}),
    line({k: v for k, v in GOOD.items() if k != "data"}),
    line({k: v for k, v in GOOD.items() if k != "id"}),
    line({**GOOD, "id": ""}),
    line({**GOOD, "id": None}),
    line({**GOOD, "type": 7}),
    line({**GOOD, "type": "Unknown", "data": [1, {"a": 2}]}),
    line({**GOOD, "type": "Unknown"}),
    line({**GOOD, "type": "Bare", "data": {}}),
    line({**GOOD, "type": "Bare", "data": None}),
    line({**GOOD, "type": "Bare", "data": 5}),
    line({**GOOD, "type": "Plain", "data": {"count": 7}}),
    line({**GOOD, "type": "Plain", "data": {"count": "7"}}),
    line({**GOOD, "type": "Other", "data": {"count": "7"}}),
    line({**GOOD, "type": "Other", "data": {"count": 7}}),
    line({**GOOD, "specversion": "1.0"}),
    line({**GOOD, "specversion": "0.3"}),
    line({**GOOD, "specversion": 1.0}),
    line({**GOOD, "subject": "x", "level": 4, "extra": "y"}),
    line({**GOOD, "subject": 5}),
    line({**GOOD, "extra": 1.5}),
    line({**GOOD, "extra": {"a": 1}}),
    line({**GOOD, "extra": True, "other": None}),
    line({**GOOD, "data_base64": "e30="}),
    line({**GOOD, "data": None, "data_base64": "eyJjb3VudCI6IDF9", "type": "Plain"}),
    line({**GOOD, "data": "text"}),
    line(with_data(host=None)),
    line(with_data(host="web")),
    line(with_data(host={})),
    line(with_data(count=7.0)),
    line(with_data(count=7.5)),
    line(with_data(count=70_000)),
    line(with_data(count=10**30)),
    line(with_data(count=True)),
    line(with_data(count=None)),
    line(with_data(large=2**64 - 1)),
    line(with_data(large=2**64)),
    line(with_data(large=-1)),
    line(with_data(level=10**25)),
    line(with_data(level="1")),
    line(with_data(small=1e39)),
    line(with_data(good="true")),
    line(with_data(note="say \"hi\"\n\\ \u00e9 \U0001f600 \x7f")),
    json.dumps(with_data(note="\u00e9 \U0001f600 \x00")).encode(),
    line(with_data(note=5)),
    line(with_data(mark="xy")),
    line(with_data(mark="\U0001f600")),
    line(with_data(began="soon")),
    line(with_data(began=5)),
    line(with_data(seen=[1, 2, None])),
    line(with_data(seen=[1, "x"])),
    line(with_data(extra=1, more=[{"a": {"b": [1.5, "x"]}}])),
    line(dict(GOOD["data"].items())),
    line(GOOD).replace(b'"id"', b'"id": "e0", "id"'),
    line(GOOD).replace(b'"count"', b'"count": 1, "count"'),
    line(GOOD).replace(b'"count"', b'"more": {"a": 1, "a": 2}, "count"'),
    line(GOOD).replace(b'"id"', b'"\\u0069d"'),
    line(GOOD).replace(b"1.25", b"NaN"),
    line(GOOD).replace(b"1.25", b"1e400"),
    line(GOOD).replace(b"1.25", b"1.25e0"),
    line(GOOD).replace(b"1.25", b"-0"),
    line(GOOD).replace(b"1.25", b"01"),
    line(GOOD).replace(b"1.25", b"1."),
    line(GOOD).replace(b"1.25", b".5"),
    line(GOOD).replace(b"1.25", b"0.1000000000000000055511151231257827021181583404541015625"),
    line(GOOD).replace(b"web", b"\\ud800"),
    line(GOOD).replace(b"web", b"\\x"),
    line(GOOD).replace(b"web", b"w\x01b"),
    line(GOOD).replace(b"web", b"w\xffb"),
    line(GOOD).replace(b"web", b"w\xc3\xa9b"),
    line(GOOD).replace(b'"s"', b'"s\\u0041"'),
    line(GOOD).replace(b'"s"', b'""'),
    line(GOOD)[:-1],
    line(GOOD) + b"x",
    line(GOOD) + b" \t",
    b" \t " + line(GOOD) + b"\r",
    b"\x0b" + line(GOOD),
    line(GOOD).replace(b": ", b":\t ").replace(b", ", b" ,\r"),
    b"",
    b"   ",
    b"\x0c",
    b"[]",
    b"5",
    b"null",
    b'{"a"}',
    b"{,}",
    b"\xff",
    b"{" * 300,
    line({**GOOD, "data": {"x": json.loads("[" * 70 + "]" * 70)}, "type": "Bare"}),
    b'{"id":"1","source":"s","type":"Bare","time":"2024-05-06T07:08:09Z","data":{"x":'
    + b"[" * 250 + b"]" * 250 + b"}}",
]  # fmt: skip


def test_every_kind_of_line(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(LINES))
    found = agree(file)
    assert sum(isinstance(each, Event) for each in found) > 20
    assert sum(isinstance(each, Rejected) for each in found) > 40


@pytest.mark.parametrize("size", [1, 50, 700])
def test_blocks_of_any_size(tmp_path: Path, size: int) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + b"\n".join(LINES[:30]) + b"\n")
    agree(file, bounds=Bounds(block_bytes=size))


def test_each_line_between_good_ones(tmp_path: Path) -> None:
    for number, odd in enumerate(LINES):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(b"\n".join([line({**GOOD, "id": "a"}), odd, line({**GOOD, "id": "b"})]))
        agree(file)


MAPPED = Mapping.parse(
    "time=ts,type=kind,id=meta.id,host.name=machine,began=start:ms,ce_level=lvl",
    timezone="Europe/Berlin",
)
PLAIN: dict[str, Any] = {
    "ts": "2024-05-06 07:08:09", "kind": "Reading", "meta": {"id": "m1"}, "machine": "web",
    "count": 7, "level": 1, "good": False, "start": 1714979289123, "lvl": "high",
}  # fmt: skip
OBJECTS: list[dict[str, Any]] = [
    PLAIN,
    {**PLAIN, "meta": {"id": 5}},
    {**PLAIN, "meta": None},
    {**PLAIN, "meta.id": "flat"},
    {**PLAIN, "meta": {"id": {"x": 1}}},
    {**PLAIN, "meta": {"id": -5}},
    {**PLAIN, "ts": "2024-03-31 02:30:00"},
    {**PLAIN, "ts": 5},
    {**PLAIN, "ts": None},
    {**PLAIN, "ts": "2024-05-06T07:08:09.123456789Z"},
    {**PLAIN, "start": 1.5},
    {**PLAIN, "start": "1714979289123"},
    {**PLAIN, "start": "1714979289.5"},
    {**PLAIN, "start": "soon"},
    {**PLAIN, "start": None},
    {**PLAIN, "kind": "Other", "count": "x"},
    {**PLAIN, "kind": None},
    {**PLAIN, "source": {"ip": "x"}, "subject": ["y"]},
    {**PLAIN, "source": "here", "subject": "y"},
    {**PLAIN, "source": 5},
    {**PLAIN, "source": ""},
    {**PLAIN, "data": {"count": 9, "note": "inner"}},
    {**PLAIN, "data": {"count": 9, "note": "inner"}, "count": None},
    {**PLAIN, "data": "text"},
    {**PLAIN, "host": {"name": "own", "port": 5}},
    {**PLAIN, "host": "own"},
    {**PLAIN, "ce_x": "e", "ce_": "f", "ce_id": "g"},
    {**PLAIN, "ce_x": 1.5},
    {**PLAIN, "lvl": 1.5},
    {**PLAIN, "lvl": [1]},
    {**PLAIN, "specversion": "2"},
    {**PLAIN, "time": "x", "began": "y", "extra": 5},
]  # fmt: skip


def test_plain_objects_by_a_mapping(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(b"\n".join(map(line, OBJECTS)))
    agree(file, mapping=MAPPED)
    for number, odd in enumerate(OBJECTS):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(b"\n".join(map(line, [PLAIN, odd, PLAIN])))
        agree(file, mapping=MAPPED)


def test_a_constant_type_and_paths_that_are_declared(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    rows = [
        {"time": "2024-05-06T07:08:09Z", "host": {"name": "a"}, "count": 1, "type": "x"},
        {"time": "2024-05-06T07:08:09Z", "host.name": "b", "host": {"name": "a"}},
        {"time": "2024-05-06T07:08:09Z", "host": None, "began": "2024-05-06T07:08:09"},
        {"time": "2024-05-06T07:08:09", "began": "2024-05-06T07:08:09Z", "id": 5},
    ]
    file.write_bytes(b"\n".join(map(line, rows)))
    agree(file, mapping=Mapping.of(type="Reading"))
    agree(file, mapping=Mapping.of(type="Reading", timezone="Asia/Kolkata"))


def test_cloudevents_in_a_zone(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(LINES))
    agree(file, mapping=Mapping.of(timezone="Europe/Berlin"))


HEADER = (
    "id,source,type,time,count,level,good,note,began,host.name,large,extra,ce_x,mark,small,seen,"
    "subject"
)
CELLS = (
    "e1,s,Reading,2024-05-06T07:08:09Z,7,1.5,true,a,2024-05-06T07:08:09Z,web,9,more,ext,x,1,,sub"
)
ROWS: list[str] = [
    CELLS,
    CELLS.replace("e1", ""),
    CELLS.replace(",s,", ",,"),
    CELLS.replace("Reading", ""),
    CELLS.replace("Reading", "Unknown"),
    CELLS.replace("Reading", "Bare"),
    CELLS.replace("Reading", "Other"),
    CELLS.replace("T07:08:09Z,7", " 07:08:09Z,7"),
    CELLS.replace("T07:08:09Z,7", "T07:08:09,7"),
    CELLS.replace("2024-05-06T07:08:09Z,7", ",7"),
    CELLS.replace(",7,", ",7.0,"),
    CELLS.replace(",7,", ",+7,"),
    CELLS.replace(",7,", ", 7 ,"),
    CELLS.replace(",7,", ",0x7,"),
    CELLS.replace(",7,", ",007,"),
    CELLS.replace(",7,", ",99999,"),
    CELLS.replace(",7,", ",7.5,"),
    CELLS.replace(",7,", ",,"),
    CELLS.replace("1.5", "+1.5"),
    CELLS.replace("1.5", ".5"),
    CELLS.replace("1.5", "5."),
    CELLS.replace("1.5", "1e5"),
    CELLS.replace("1.5", "nan"),
    CELLS.replace("1.5", "inf"),
    CELLS.replace("1.5", "1e999"),
    CELLS.replace("1.5", " 1.5"),
    CELLS.replace("1.5", "1_5"),
    CELLS.replace("true", "TRUE"),
    CELLS.replace("true", "1"),
    CELLS.replace("true", " true"),
    CELLS.replace(",a,", ',"a, b",'),
    CELLS.replace(",a,", ',"say ""hi""",'),
    CELLS.replace(",a,", ',"two\nlines\r\n",'),
    CELLS.replace(",a,", ',a"b,'),
    CELLS.replace(",a,", ',"a"b,'),
    CELLS.replace(",a,", ',"",'),
    CELLS.replace(",a,", ',"""",'),
    CELLS.replace(",a,", ",\u00e9 \U0001f600,"),
    CELLS.replace(",a,", ",a\rb,"),
    CELLS.replace(",a,", ",a\x00b,"),
    CELLS + ",one more",
    "too,few",
    "one",
    "",
    "   ",
    '""',
    "\u00a0",
    "\u2003\u00e9",
    CELLS + "\r",
    CELLS + "\r\r",
    CELLS.replace(",9,", ",18446744073709551615,"),
    CELLS.replace(",9,", ",18446744073709551616,"),
    CELLS.replace(",9,", ',"9",'),
    CELLS.replace(",x,1", ",xy,1"),
    CELLS.replace(",,sub", ',"[1, 2]",sub'),
    CELLS.replace(",,sub", ",[1,sub"),
    CELLS.replace(",1,,", ",1e39,,"),
]  # fmt: skip


def test_every_kind_of_row(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_bytes("\n".join([HEADER, *ROWS]).encode())
    found = agree(file)
    assert sum(isinstance(each, Event) for each in found) > 25
    assert sum(isinstance(each, Rejected) for each in found) > 15
    for number, odd in enumerate([*ROWS, '"', CELLS.replace(",a,", ',"a,')]):
        file = tmp_path / f"{number}.csv"
        file.write_bytes("\n".join([HEADER, CELLS, odd, CELLS, CELLS]).encode())
        agree(file)
    file.write_bytes("\n".join([HEADER, CELLS, CELLS]).encode().replace(b"web", b"w\xffb", 1))
    agree(file)


@pytest.mark.parametrize("size", [1, 7, 300])
def test_rows_in_blocks_of_any_size(tmp_path: Path, size: int) -> None:
    file = tmp_path / "events.csv"
    file.write_bytes(b"\xef\xbb\xbf\n" + "\n".join([HEADER, *ROWS[:40]]).encode())
    agree(file, bounds=Bounds(block_bytes=size))


def test_rows_by_a_mapping_with_another_delimiter(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text(
        "when;n;what;level\n1714979289.25;5;x;1\n1714979289;5.0;y;\nsoon;1;z;2\n;1;z;2\n"
        "1714979289;70000;y;3\n"
    )
    mapping = Mapping.parse("time=when:s,count=n,note=what", type="Reading")
    types = types_from(Reading={"count": "short", "note": "string", "level": "double"})
    found = agree(file, types, mapping, delimiter=";")
    assert [type(each) for each in found] == [Event, Event, Rejected, Rejected, Rejected]


def tables() -> dict[str, pa.Table]:
    times = pa.array([0, 10**15, None, -1], pa.timestamp("us", "UTC"))
    base = {
        "id": ["a", None, "c", ""],
        "type": ["Plain", "Plain", "Bare", "Unknown"],
        "time": times,
    }
    count = pa.array([1, None, 2**40, 3], pa.int64())
    struct = pa.array(
        [
            {"count": 1, "host": {"name": "a"}, "note": None},
            {"count": None, "host": None, "note": "x"},
            None,
            {"count": 2**40, "host": {"name": None}, "note": "y"},
        ]
    )
    reading = {"type": ["Reading"] * 4, "time": times.fill_null(5)}
    full = {
        "host.name": ["a", "b", None, "d"], "large": pa.array([1, 2**64 - 1, None, 5], pa.uint64()),
        "level": pa.array([1.5, float("nan"), None, 2.0]),
        "small": pa.array([1, 2, 3, 4], pa.int8()),
        "good": [True, None, False, True], "note": ["a", "b", None, ""],
        "mark": ["x", "xy", "", None],
        "began": ["2024-05-06T07:08:09Z", "soon", None, "2024-05-06T07:08:09"],
        "seen": pa.array([[1], None, [2**40], []]),
        "count": pa.array([1.0, 2.5, None, 1e10]),
    }  # fmt: skip
    return {
        "plain": pa.table({**base, "count": count}),
        "extra": pa.table(
            {**base, "count": count, "extra": [1, 2, None, 4], "ce_x": [1, 2, 3, None]}
        ),
        "dictionary": pa.table(
            {**base, "type": pa.array(base["type"]).dictionary_encode(), "count": count}
        ),
        "struct": pa.table({**base, "data": struct}),
        "struct and columns": pa.table({**base, "data": struct, "count": count}),
        "reading": pa.table({**reading, **full}),
        "naive": pa.table({**reading, **full, "time": times.cast(pa.timestamp("ns"))}),
        "text times": pa.table(
            {**base, "count": count, "time": ["2024-05-06T07:08:09Z", "soon", None, "x" * 100]}
        ),
        "inner": pa.table(
            {
                **reading,
                **{k: v for k, v in full.items() if k != "host.name"},
                "host": pa.array([{"name": "a"}, None, {"name": None}, {"name": "d"}]),
            }
        ),
        "json": pa.table({**base, "data": ['{"count": 1}', None, "{}", "x"]}),
        "versions": pa.table({**base, "count": count, "specversion": ["1.0", "0.3", None, "1.0"]}),
        "numbers": pa.table({**base, "count": count, "id": [1, 2, 3, None]}),
        "odd": pa.table(
            {**base, "count": count, "source": [1, 2, 3, None], "ce_y": [1.5, None, 2.0, 3.0]}
        ),
        "decimals": pa.table(
            {
                **base,
                "count": count.cast(pa.decimal128(30, 2)),
                "day": pa.array([1, 2, 3, 4], pa.date32()),
            }
        ),
        "map": pa.table(
            {
                **base,
                "data": pa.array(
                    [[("count", 1)], None, [], [("x", 2)]], pa.map_(pa.string(), pa.int64())
                ),
            }
        ),
        "empty": pa.table({**base, "count": count}).slice(0, 0),
    }


@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_every_kind_of_table(tmp_path: Path, name: str, ending: str) -> None:
    table = tables()[name]
    file = tmp_path / f"events.{ending}"
    if ending == "parquet":
        pq.write_table(table, file)
    else:
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    agree(file)
    agree(file, mapping=Mapping.of(timezone="Europe/Berlin"))
    if "id" in table.schema.names:
        agree(file, mapping=Mapping.parse("user=id", timezone="Europe/Berlin"))
    agree(file, mapping=Mapping.of(type="Plain"))


def test_text_in_parquet_that_is_no_utf8(tmp_path: Path) -> None:
    bad = pa.array([b"ok", b"b\xffd", b"ok", b"ok"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 4, bad.buffers())
    inner = pa.StructArray.from_arrays([text], ["name"])
    times = pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC"))
    base = {"id": list("abcd"), "type": ["Plain"] * 4, "time": times, "count": [1] * 4}
    for number, columns in enumerate(
        [{"note": text}, {"host": inner}, {"id": text}, {"type": text}, {"ce_x": text}]
    ):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({**base, **columns}), file)
        found = agree(file)
        assert [type(each) for each in found] == [Event, Rejected, Event, Event]
        assert isinstance(found[1], Rejected)
        assert "the text is not UTF-8" in found[1].problems[0]


@given(
    st.lists(
        st.fixed_dictionaries(
            {"count": st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)},
        ),
        max_size=8,
    )
)
@settings(max_examples=40, deadline=None)
def test_numbers_of_any_size(rows: list[dict[str, Any]]) -> None:
    text = b"\n".join(
        line({**GOOD, "type": "Plain", "id": str(n), "data": data}) for n, data in enumerate(rows)
    )
    from ensue.events.files.text.json_lines import LineChunks
    from ensue.events.records.reading import read_events

    chunk = LineChunks(TYPES, "f").chunk(text)
    singly = list(read_events(io.BytesIO(text), TYPES))
    checked = Intake(TYPES, Counts()).check(chunk)
    assert checked.rejected == [each for each in singly if isinstance(each, Rejected)]
    events = [each for each in singly if isinstance(each, Event)]
    assert_columns_show(checked.batch, events)
    assert np.all(np.diff(checked.kept) > 0)
