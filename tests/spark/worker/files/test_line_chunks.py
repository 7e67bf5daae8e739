"""Lines in workers are read as lines of a file in one process: events, problems, numbers."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ensue
from ensue.events.event import Event
from ensue.events.mapping import Mapping
from ensue.events.records.reading import read_events
from ensue.spark.batch.line_columns import csv_fields, json_fields
from ensue.spark.worker.event_rows import read_event
from ensue.spark.worker.files.line_chunks import NEEDS_NUMBER, LinesTask, read_lines

LIBRARY = ensue.parse(
    """
    eventtype Base { attribute long Key; attribute double Value; };
    eventtype Small : Base { attribute short Size; attribute boolean Good; };
    eventtype Odd : Base { attribute float Part; attribute char Sign; attribute timestamp Since; };
    eventtype Elsewhere { attribute long Unknown; };
    Base correlation Any (Base base) base { case true: push new Base {}; }
    """
)
TYPES = LIBRARY.checked.types
GOOD = {
    "id": ["1", "a", "e7", '"quoted, with comma"', "é"],
    "type": ["Base", "Small", "Odd", "other", '"Small"'],
    "time": ["2024-05-06T07:08:09Z", "2024-05-06T07:08:09.25Z", "2024-02-29T00:00:00Z"],
    "Key": ["0", "-5", "007", "", "2147483647"],
    "Value": ["1", "1.5", "-0.0", "1e3", "", "0.1"],
    "Size": ["1", "", "-32768"],
    "Good": ["true", "FALSE", ""],
    "Part": ["1.25", ""],
    "Sign": ["x", "é", ""],
    "Since": ["2024-05-06T07:08:09Z", ""],
    "Note": ["", "plain", '"say ""so"""', " x "],
    "ce_origin": ["", "north"],
    "specversion": ["", "1.0"],
}
NAMES = list(GOOD)
HEADER = ",".join(NAMES).encode()
UNUSUAL = {
    "id": ["", " "],
    "type": ["", "Elsewhere"],
    "time": [
        "",
        "never",
        "2024-05-06 07:08:09Z",
        "2024-05-06T07:08:09",
        "2024-05-06T09:08:09+02:00",
        "2023-02-29T00:00:00Z",
        "2016-12-31T23:59:60Z",
        "0999-01-01T00:00:00Z",
        "2024-05-06t07:08:09.1234567z",
    ],
    "Key": ["many", "1.0", "+4", " 7 ", "0x10", "2147483648", "9" * 30, "1.5"],
    "Value": ["nan", "inf", "1e400", "0x1p3", ".5", "5.", "1_000", " 2 "],
    "Size": ["32768", "x"],
    "Good": ["1", "yes", " true "],
    "Part": ["1e39", "3.4028235677973366e38"],
    "Sign": ["xy"],
    "Since": ["yesterday", "2024-05-06T09:08:09+02:00"],
    "specversion": ["0.3"],
}
BROKEN = [
    b"x,Base",
    b"",
    b"   ",
    b'"a"b,Base,2024-05-06T07:08:09Z,1,1,,,,,,,,',
    b"x" + b"," * 20,
    b"x,Base,\xff,1,1,,,,,,,,",
    b"x,Base,2024-05-06T07:08:09Z,1,1,,,,,,a\rb,,",
    b'x,Base,2024-05-06T07:08:09Z,1,1,,,,,,a"b"c,,',
]


def line(random: Random) -> bytes:
    if random.random() < 0.15:
        return random.choice(BROKEN)
    cells = {name: random.choice(values) for name, values in GOOD.items()}
    for name in random.sample(sorted(UNUSUAL), random.choice([0, 0, 0, 1, 1, 2])):
        cells[name] = random.choice(UNUSUAL[name])
    return ",".join(cells[name] for name in NAMES).encode() + random.choice([b"", b"", b"\r"])


def in_columns(lines: list[bytes], random: Random) -> list[dict[str, Any]]:
    """The rows that a worker makes of the lines, in batches of any size, by their places."""
    fields = csv_fields(LIBRARY, NAMES)
    assert fields is not None
    before = (("file:///e.csv", 0, 0),)
    task = LinesTask(
        LIBRARY.tables(), ("file:/e.csv",), "csv", tuple(NAMES), fields=fields, before=before
    )
    rest = [HEADER, *lines]
    batches = []
    while rest:
        count = random.randint(1, 40)
        part, rest = rest[:count], rest[count:]
        batches.append(
            pa.RecordBatch.from_pydict(
                {
                    "file": ["file:///e.csv"] * len(part),
                    "start": pa.array([0] * len(part), pa.int64()),
                    "value": pa.array(part, pa.binary()),
                }
            )
        )
    rows = [row for made in read_lines(tuple(task), iter(batches)) for row in made.to_pylist()]
    return sorted(rows, key=lambda row: row["ensue_arrival"])


@pytest.mark.parametrize("seed", range(40))
def test_they_are_read_as_in_one_process(seed: int) -> None:
    random = Random(seed)
    lines = [line(random) for _ in range(random.choice([1, 30, 120]))]
    file = io.BytesIO(HEADER + b"\n" + b"".join(each + b"\n" for each in lines))

    wanted = list(read_events(file, TYPES, "csv", name="e.csv"))
    found = in_columns(lines, random)

    missing_id = "`id` must be a non-empty string; it is missing"
    assert len(found) == len(wanted)
    for row, record in zip(found, wanted, strict=True):
        if row["problems"] == [missing_id]:
            # In one process the number of a row stands in for its id.
            assert isinstance(record, Event)
            continue
        if not isinstance(record, Event):
            assert row["problems"] is not None
            assert [each for each in row["problems"] if each != missing_id] == list(record.problems)
            assert (row["raw"], row["line"] + 1) == (record.raw, record.number)
            continue
        assert row["problems"] is None
        held = (row["id"], row["source"], row["type"], row["ce_origin"])
        assert held == (record.id, record.source, record.type, record.extensions.get("origin"))
        assert ensue.Event.of("x", time=row["time"]).time == record.time
        for name in TYPES.attributes(record.type):
            assert row[name] == record.attributes[name], name
            assert type(row[name]) is type(record.attributes[name]) or name == "Since"


def test_a_line_that_leaves_a_quote_open_is_told_apart() -> None:
    (row,) = in_columns([b'x,Base,2024-05-06T07:08:09Z,1,1,,,,,,"two'], Random(1))

    assert row["problems"] == ["a quote is not closed in its line"]


def test_a_record_without_an_id_is_marked_where_records_are_not_numbered() -> None:
    fields = csv_fields(LIBRARY, NAMES)
    task = LinesTask(LIBRARY.tables(), ("file:/e.csv",), "csv", tuple(NAMES), fields=fields or ())
    good = b",Base,2024-05-06T07:08:09Z,1,1,,,,,,,,"
    batch = pa.RecordBatch.from_pydict(
        {
            "file": ["file:///e.csv"] * 3,
            "start": pa.array([0] * 3, pa.int64()),
            "value": pa.array([HEADER, b"e1" + good, good], pa.binary()),
        }
    )

    rows = [row for made in read_lines(tuple(task), iter([batch])) for row in made.to_pylist()]

    rows.sort(key=lambda row: row["ensue_arrival"])
    assert [(row["line"], row["id"], row["problems"]) for row in rows] == [
        (None, "e1", None),
        (2, None, [NEEDS_NUMBER]),
    ]


@pytest.mark.parametrize(
    "attribute", ["sequence<long> Key", "unsigned long long Key", "string Key"]
)
def test_attributes_that_no_column_holds_need_whole_events(attribute: str) -> None:
    other = ensue.parse(
        f"eventtype A {{ attribute long Key; }}; eventtype B {{ attribute {attribute}; }};"
        "A correlation R (A a) a { case true: push new A {}; }"
    )

    assert csv_fields(other, NAMES) is None
    assert json_fields(other, Mapping()) is None


# --- JSON lines -----------------------------------------------------------------------------------

JSON_LINES = [
    '{"id": "%d", "source": "s", "type": "Base", "time": "2024-05-06T07:08:09Z",'
    ' "data": {"Key": %d, "Value": 1.5}}',
    '{"id": "%d", "source": "s", "type": "Base", "time": "2024-05-06 07:08:09+02:00",'
    ' "data": {"Key": %d, "Value": 1}}',
    '{"id": "%d", "source": "s", "type": "Base", "time": "never", "data": {"Key": %d}}',
    '{"id": "%d", "source": "s", "type": "Base", "time": "2024-05-06T07:08:09Z",'
    ' "data": {"Key": "%d", "Value": 1.5}}',
    '{"id": "%d", "source": "s", "type": "other", "time": "2024-05-06T07:08:09Z", "data": %d}',
    '{"id": "%d", "type": "Base", "time": "2024-05-06T07:08:09Z", "x": %d}',
    '{"id": "%d", "source": "s", "type": "Small", "time": "2024-05-06T07:08:09.1234567Z",'
    ' "data": {"Key": %d, "Value": null, "Size": 70000, "Good": true}}',
    '{"id": "%d", "source": "s", "type": "Odd", "time": "2024-05-06T07:08:09Z", "data": {"Key":'
    ' %d, "Value": 0, "Part": 1.5, "Sign": "x", "Since": "2024-05-06T07:08:09Z"}}',
    "no JSON %d %d",
    "[%d, %d]",
    '\ufeff{"id": "%d", "n": %d}',
]


@pytest.mark.parametrize("fields", ["typed", "events"])
@pytest.mark.parametrize("seed", range(10))
def test_json_lines_are_read_as_in_one_process(seed: int, fields: str) -> None:
    random = Random(seed)
    lines = [
        random.choice([*JSON_LINES, JSON_LINES[0], JSON_LINES[0]]) % (number, number)
        for number in range(random.choice([1, 50]))
    ]
    texts = [each.encode() for line in lines for each in random.choice([[line], [line, "", " "]])]
    wanted = list(read_events(io.BytesIO(b"\n".join(texts)), TYPES, "jsonl", name="e.jsonl"))
    typed = json_fields(LIBRARY, Mapping())
    assert typed is not None
    task = LinesTask(
        LIBRARY.tables(), ("file:/e.jsonl",), "jsonl", fields=typed if fields == "typed" else ()
    )
    rest, batches = texts, []
    while rest:
        part, rest = rest[: (count := random.randint(1, 20))], rest[count:]
        batches.append(
            pa.RecordBatch.from_pydict(
                {
                    "file": ["file:///e.jsonl"] * len(part),
                    "start": pa.array([0] * len(part), pa.int64()),
                    "value": pa.array(part, pa.binary()),
                }
            )
        )

    rows = [row for made in read_lines(tuple(task), iter(batches)) for row in made.to_pylist()]
    rows.sort(key=lambda row: row["ensue_arrival"])

    assert len(rows) == len(wanted)
    for row, record in zip(rows, wanted, strict=True):
        if not isinstance(record, Event):
            assert (row["raw"], row["line"] + 1) == (record.raw, record.number)
            assert row["problems"] == list(record.problems)
            continue
        assert row["problems"] is None
        assert ensue.Event.of("x", time=row["time"]).time == record.time
        if fields == "events":
            assert read_event(row["payload"], TYPES) == record
            continue
        assert (row["id"], row["source"], row["type"]) == (record.id, record.source, record.type)
        for name in TYPES.attributes(record.type):
            assert row[name] == record.attributes[name], name
