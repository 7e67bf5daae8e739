"""Lines of CSV in columns are read as lines of a file in one process: events, problems, numbers."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ensue
from ensue.events.event import Event
from ensue.events.reading import read_events
from ensue.spark.worker.csv_rows import CsvTask, column_kinds, read_csv_lines

LIBRARY = ensue.parse(
    """
    eventtype Base { attribute long Key; attribute double Value; };
    eventtype Small : Base { attribute short Size; attribute boolean Good; };
    eventtype Odd : Base { attribute float Part; attribute char Sign; attribute timestamp Since; };
    eventtype Elsewhere { attribute long Unknown; };
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
    kinds = column_kinds(NAMES, TYPES)
    assert kinds is not None
    task = CsvTask(LIBRARY.tables(), ("file:/e.csv",), HEADER, tuple(NAMES), kinds)
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
    rows = [row for made in read_csv_lines(tuple(task), iter(batches)) for row in made.to_pylist()]
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


@pytest.mark.parametrize(
    "attribute", ["sequence<long> Key", "unsigned long long Key", "string Key"]
)
def test_attributes_that_no_column_holds_are_named(attribute: str) -> None:
    other = ensue.parse(
        f"eventtype A {{ attribute long Key; }}; eventtype B {{ attribute {attribute}; }};"
    )

    assert column_kinds(NAMES, other.checked.types) is None
