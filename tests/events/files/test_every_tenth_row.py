"""Files with every tenth row broken in a way of its own: the same refusals as row by row.

A file is made of good rows, of which each tenth is broken, once or twice, by breakages that are
drawn: of values, of times, of the text itself, of its encoding, of its line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.events.bounds import Bounds
from ensue.events.event import Rejected
from ensue.events.mapping import Mapping
from tests.events.files.test_agreement import GOOD, HEADER, PLAIN, agree

TENTH = 10
LONG = "long " * 20_000

WRONG_TIMES: list[Any] = [
    None, "", "soon", 5, 1.5, True, {}, [], "2024-05-06", "2024-05-06T07:08:09",
    "24-05-06T07:08:09Z",
    "2024-13-06T07:08:09Z", "2024-02-30T07:08:09Z", "2024-05-06T24:00:00Z", "2024-05-06T07:08:61Z",
    "2024-05-06T07:08:09.Z", "2024-05-06T07:08:09+25:00", "2024-05-06T07:08:09+0200",
    " 2024-05-06T07:08:09Z", "2024-05-06t07:08:09z", "0001-01-01T00:00:00+23:00",
    "9999-12-31T23:59:59-23:00", "2016-12-31T23:59:60Z",
    "06/May/2024:07:00:00 +0000", "\u0662\u0660\u0662\u0664-05-06T07:08:09Z",
]  # fmt: skip
WRONG_VALUES: list[Any] = [
    None, "", " ", "x", "1", "1.0", "true", 0, -1, 1.5, 2**15, 2**31, 2**63, 2**64, -(2**63) - 1,
    10**40, 1e39, 1e308, -0.0, True, [], [1], ["x"], {}, {"name": None}, {"name": 5},
    {"a": {"b": []}}, "\u00e9", "\U0001f600", "a\tb", "\x7f", LONG,
]  # fmt: skip
ATTRIBUTES = ["count", "large", "level", "small", "good", "note", "mark", "began", "seen", "host"]

Breakage = Callable[[st.DataObject, dict[str, Any]], dict[str, Any]]


def another_time(data: st.DataObject, row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "time": data.draw(st.sampled_from(WRONG_TIMES))}


def another_value(data: st.DataObject, row: dict[str, Any]) -> dict[str, Any]:
    name = data.draw(st.sampled_from(ATTRIBUTES))
    return {**row, "data": {**row["data"], name: data.draw(st.sampled_from(WRONG_VALUES))}}


def another_member(data: st.DataObject, row: dict[str, Any]) -> dict[str, Any]:
    names = [
        "id",
        "source",
        "type",
        "subject",
        "specversion",
        "data",
        "data_base64",
        "more",
        "count",
    ]
    name = data.draw(st.sampled_from(names))
    return {**row, name: data.draw(st.sampled_from([*WRONG_VALUES, "Plain", "Unknown"]))}


def one_less(data: st.DataObject, row: dict[str, Any]) -> dict[str, Any]:
    name = data.draw(st.sampled_from([*row, *row["data"]]))
    inner = {each: value for each, value in row["data"].items() if each != name}
    return {each: value for each, value in {**row, "data": inner}.items() if each != name}


IN_JSON: list[Breakage] = [another_time, another_value, another_member, one_less]


def another_byte(data: st.DataObject, text: bytes) -> bytes:
    place = data.draw(st.integers(0, max(0, len(text) - 1)))
    signs = [
        b"\x00",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\\",
        b'"',
        b"\r",
        b"\x0b",
        b"\xef\xbb\xbf",
        b"",
    ]
    return text[:place] + data.draw(st.sampled_from(signs)) + text[place + 1 :]


def broken_off(data: st.DataObject, text: bytes) -> bytes:
    return text[: data.draw(st.integers(0, len(text)))]


def twice(_: st.DataObject, text: bytes) -> bytes:
    return text + text


def another_encoding(data: st.DataObject, text: bytes) -> bytes:
    return text.decode("utf-8", "replace").encode(
        data.draw(st.sampled_from(["utf-16", "latin-1"])), "replace"
    )


IN_TEXT = [another_byte, broken_off, twice, another_encoding]


def text_of(data: st.DataObject, rows: Sequence[bytes]) -> bytes:
    """Rows with a line ending, and what may stand before and behind them."""
    ending = data.draw(st.sampled_from([b"\n", b"\r\n"]))
    mark = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    last = data.draw(st.sampled_from([b"", ending, ending * 3]))
    lines = [row if data.draw(st.integers(0, 9)) else row + ending for row in rows]
    return mark + ending.join(lines) + last


def json_rows(data: st.DataObject, good: dict[str, Any], breakages: list[Breakage]) -> list[bytes]:
    rows = []
    for number in range(data.draw(st.integers(1, 4)) * TENTH):
        row = {**good, "id": str(number)}
        is_broken = number % TENTH == TENTH - 1
        if is_broken:
            for _ in range(data.draw(st.integers(0, 2))):
                if isinstance(row.get("data"), dict):
                    row = data.draw(st.sampled_from(breakages))(data, row)
        text = json.dumps(row, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "replace")
        if is_broken and data.draw(st.booleans()):
            text = data.draw(st.sampled_from(IN_TEXT))(data, text)
        rows.append(text)
    return rows


MANY = settings(max_examples=15, deadline=None)


@given(data=st.data())
@MANY
def test_json_lines(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("broken") / "events.jsonl"
    file.write_bytes(text_of(data, json_rows(data, GOOD, IN_JSON)))
    agree(file)


NESTED = Mapping.parse(
    "time=meta.when,type=meta.kind,host.name=machine.name,began=start:ms,note=text.short",
    timezone="Europe/Berlin",
)
OBJECT: dict[str, Any] = {
    **{name: value for name, value in PLAIN.items() if name in ("count", "level", "good", "start")},
    "meta": {"when": "2024-05-06 07:08:09", "kind": "Reading"},
    "machine": {"name": "web", "port": 5},
    "text": {"short": "a", "long": "b"},
}


def another_at_a_path(data: st.DataObject, row: dict[str, Any]) -> dict[str, Any]:
    outer, inner = data.draw(
        st.sampled_from(
            [
                ("meta", "when"),
                ("meta", "kind"),
                ("machine", "name"),
                ("text", "short"),
                ("start", ""),
            ]
        )
    )
    value = data.draw(st.sampled_from([*WRONG_TIMES, *WRONG_VALUES, 1714979289123, "1714979289.5"]))
    if not inner or data.draw(st.booleans()):
        return {**row, outer: value}
    held = row.get(outer)
    return {**row, outer: {**(held if isinstance(held, dict) else {}), inner: value}}


def with_dots(data: st.DataObject, row: dict[str, Any]) -> dict[str, Any]:
    name = data.draw(
        st.sampled_from(["meta.when", "meta.kind", "machine.name", "host.name", "text.short"])
    )
    return {**row, name: data.draw(st.sampled_from(WRONG_VALUES))}


@given(data=st.data())
@MANY
def test_plain_objects_with_paths(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("broken") / "log.jsonl"
    rows = json_rows(data, {**OBJECT, "data": {}}, [another_at_a_path, with_dots])
    file.write_bytes(text_of(data, rows))
    agree(file, mapping=NESTED)


def cells(data: st.DataObject, number: int, delimiter: str, is_broken: bool) -> bytes:
    row = [
        str(number), "s", "Reading", "2024-05-06T07:08:09Z", "7", "1.5", "true", "a",
        "2024-05-06T07:08:09Z", "web", "9", "more", "ext", "x", "1", "", "sub",
    ]  # fmt: skip
    for _ in range(data.draw(st.integers(0, 2)) if is_broken else 0):
        place = data.draw(st.integers(0, len(row)))
        value = data.draw(
            st.sampled_from([*WRONG_TIMES, *WRONG_VALUES, "nan", "inf", "+7", "0x7", "1_0"])
        )
        shown = value if isinstance(value, str) else json.dumps(value)
        change = data.draw(st.sampled_from(["replace", "insert", "remove"]))
        row[place : place + (change != "insert")] = [] if change == "remove" else [shown]
    quoted = []
    for cell in row:
        needs = any(sign in cell for sign in f'{delimiter}"\r\n')
        if needs or data.draw(st.integers(0, 5)) == 0:
            cell = '"' + cell.replace('"', '""') + '"'
        quoted.append(cell)
    return delimiter.join(quoted).encode("utf-8", "replace")


@given(data=st.data())
@MANY
def test_csv(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    delimiter = data.draw(st.sampled_from([",", ";", "\t", "|", " "]))
    rows = [HEADER.replace(",", delimiter).encode()]
    for number in range(data.draw(st.integers(1, 4)) * TENTH):
        is_broken = number % TENTH == TENTH - 1
        text = cells(data, number, delimiter, is_broken)
        if is_broken and data.draw(st.booleans()):
            text = data.draw(st.sampled_from(IN_TEXT))(data, text)
        rows.append(text)
    file = tmp_path_factory.mktemp("broken") / "events.csv"
    file.write_bytes(text_of(data, rows))
    agree(file, delimiter=delimiter)


COLUMNS: dict[str, st.SearchStrategy[pa.DataType]] = {
    "time": st.sampled_from(
        [pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.timestamp("s"), pa.string()]
    ),
    "count": st.sampled_from([pa.int16(), pa.int64(), pa.uint64(), pa.float64(), pa.string()]),
    "large": st.sampled_from([pa.uint64(), pa.int8(), pa.float32(), pa.string()]),
    "level": st.sampled_from([pa.float64(), pa.float32(), pa.int32(), pa.string(), pa.bool_()]),
    "note": st.sampled_from([pa.string(), pa.large_string(), pa.int64()]),
    "mark": st.sampled_from([pa.string(), pa.dictionary(pa.int8(), pa.string())]),
    "began": st.sampled_from([pa.timestamp("ms", "UTC"), pa.string(), pa.int64()]),
    "good": st.sampled_from([pa.bool_(), pa.string(), pa.int8()]),
    "host": st.sampled_from([pa.struct({"name": pa.string()}), pa.struct({"name": pa.int64()})]),
    "type": st.sampled_from([pa.string(), pa.dictionary(pa.int8(), pa.string())]),
}
OF_A_TYPE: list[tuple[Callable[[pa.DataType], bool], list[Any], Any]] = [
    (pa.types.is_timestamp, [None, 0, -(10**9), 10**9], 1_000),
    (pa.types.is_integer, [None, 0, 1, 127], 7),
    (pa.types.is_floating, [None, 0.5, -0.0, float("nan"), float("inf"), 1e30], 1.0),
    (pa.types.is_boolean, [None, False], True),
    (pa.types.is_struct, [None, {"name": None}], {}),
]


ODD_TEXTS = [None, "", "Plain", "Unknown", "soon", "7", "\u00e9", "2024-05-06 07:08:09"]
USUAL_TEXTS = dict.fromkeys(["time", "began"], "2024-05-06T07:08:09Z") | {"type": "Reading"}


def column(data: st.DataObject, name: str, type_: pa.DataType, count: int) -> pa.Array:
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    found = [(odd, usual) for is_it, odd, usual in OF_A_TYPE if is_it(plain)]
    odd, usual = found[0] if found else (ODD_TEXTS, USUAL_TEXTS.get(name, "x"))
    values = [
        data.draw(st.sampled_from(odd)) if number % TENTH == TENTH - 1 else usual
        for number in range(count)
    ]
    made = pa.array(values, plain)
    return made.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else made


@given(data=st.data())
@MANY
def test_parquet(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    count = data.draw(st.integers(1, 3)) * TENTH
    left_out = data.draw(st.sets(st.sampled_from(sorted(COLUMNS.keys() - {"time", "type"}))))
    table = pa.table(
        {
            name: column(data, name, data.draw(types), count)
            for name, types in COLUMNS.items()
            if name not in left_out
        }
    )
    file = tmp_path_factory.mktemp("broken") / "events.parquet"
    pq.write_table(table, file, row_group_size=data.draw(st.sampled_from([7, 1000])))
    agree(file)
    agree(file, mapping=Mapping.of(timezone="Europe/Berlin"))


def test_a_row_of_each_kind_is_refused_in_a_file_of_many_blocks(tmp_path: Path) -> None:
    lines, broken = [], 0
    for number in range(4 * len(WRONG_TIMES) * TENTH):
        row = {**GOOD, "id": str(number)}
        if number % TENTH == TENTH - 1:
            row["time"] = WRONG_TIMES[number // TENTH % len(WRONG_TIMES)]
            broken += 1
        lines.append(json.dumps(row).encode())
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(lines))

    found = agree(file, bounds=Bounds(block_bytes=4_000))

    refused = [each for each in found if isinstance(each, Rejected)]
    assert all(each.number % TENTH == 0 for each in refused)
    # A leap second, small letters and a space for the `T` are times all the same.
    assert 0.8 * broken < len(refused) < broken
