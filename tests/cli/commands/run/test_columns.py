"""`ensue run` in columns: the same outputs and refusals as event by event, in every format."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Ensue

LIBRARY = """
eventtype Reading { attribute string host; attribute double level; attribute short site; };
eventtype High : Reading {};
eventtype Alarm { attribute string host; attribute double level; attribute timestamp began; };
eventtype Quiet {};

Alarm correlation Rising (Reading a where level > 1.0, High b)
    a ; b within 10 min by host
{ case true: push new Alarm { host = b.host, level = a.level, began = a.time }; }

Reading correlation Loud (High a where level > 95.0) a { case true: push a; }

Quiet correlation Silence (Reading a) a ; timeout(5 min) unless a by host
{ case true: push new Quiet {}; }
"""


def readings(count: int, seed: int = 0) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "specversion": "1.0",
            "id": f"e{number}",
            "source": draw.choice(["north", "south"]),
            "type": draw.choice(["Reading", "Reading", "High", "Other"]),
            "time": f"2024-05-06T{number // 600:02}:{number // 10 % 60:02}:{number % 10 * 6:02}Z",
            "data": {
                "host": draw.choice(["a", "b", 'c"\\\n', "d\u00e9"]),
                "level": round(draw.uniform(0, 100), draw.choice([0, 2, 15])),
                "site": draw.choice([1, None]),
            },
        }
        for number in range(count)
    ]


def broken(events: list[dict[str, Any]]) -> list[bytes]:
    """Every tenth line broken in another way."""
    ways: list[Any] = [
        lambda line: line[:-1],
        lambda line: line.replace(b'"level"', b'"levels"'),
        lambda line: line.replace(b'"Reading"', b"5").replace(b'"High"', b"5"),
        lambda line: line.replace(b"T", b" ", 1),
        lambda line: line.replace(b'Z"', b'"'),
        lambda line: line.replace(b'"id"', b'"id": "x", "id"'),
        lambda line: line.replace(b'"site": 1', b'"site": 99999').replace(b"null", b'"x"'),
        lambda line: line.replace(b'"host"', b'"more": [NaN], "host"'),
        lambda _: b"\xff\xfe",
        lambda _: b"[]",
        lambda line: line.replace(b'"1.0"', b'"0.1"'),
        lambda line: line.replace(b'"source"', b'"extra": {"a": 1}, "source"'),
        lambda line: line.replace(b'"source"', b'"extra": 7, "source"'),
        lambda line: line.replace(b'"level": ', b'"level": 1e999, "x": '),
        lambda line: line.replace(b'"data"', b'"data_base64": "x", "data"'),
    ]
    lines = [json.dumps(each).encode() for each in events]
    for number in range(0, len(lines), 10):
        lines[number] = ways[number // 10 % len(ways)](lines[number])
    return lines


@pytest.fixture
def library(tmp_path: Path) -> Path:
    file = tmp_path / "rules.cor"
    file.write_text(LIBRARY)
    return file


def same_on_all_engines(ensue: Ensue, tmp_path: Path, *arguments: object) -> bytes:
    """What every engine writes, says and keeps of what is refused."""
    found = []
    for engine in ("step", "batch", "reference"):
        out, letters = tmp_path / f"{engine}.jsonl", tmp_path / f"{engine}.bad"
        answer = ensue(
            "run", *arguments, "--engine", engine, "--out", out, "--dead-letter", letters,
            "--until", "2024-05-07T00:00:00Z",
        )  # fmt: skip
        told = [
            each.replace(str(out), "OUT").replace(str(letters), "BAD")
            for each in answer.err.splitlines()
            if "are sorted" not in each
        ]
        found.append((answer.code, out.read_bytes(), letters.read_bytes(), told))
    assert found[1] == found[0]
    assert found[2] == found[0]
    return found[0][1]


def test_every_tenth_line_is_broken_in_another_way(
    ensue: Ensue, tmp_path: Path, library: Path
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(broken(readings(400))))
    made = same_on_all_engines(ensue, tmp_path, library, "-e", file)
    assert made.count(b"\n") > 20


def test_a_null_for_an_id_is_no_id(ensue: Ensue, tmp_path: Path, library: Path) -> None:
    rows = readings(60)
    for row in rows[::3]:
        row["id"] = None
        # Another name with an escape, or none, does not decide about the id.
        row["source"] = "\u00e9" if row is rows[0] else None
    events, objects = tmp_path / "events.jsonl", tmp_path / "objects.jsonl"
    events.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    plain = [{**row, **row["data"]} for row in rows]
    objects.write_text("".join(f"{json.dumps(row)}\n" for row in plain))

    made = same_on_all_engines(ensue, tmp_path, library, "-e", events)
    named = same_on_all_engines(ensue, tmp_path, library, "-e", objects, "--columns", "host=host")

    assert b'"trigger":"e10"' in made
    assert b'"trigger":"e10"' in named
    assert re.search(rb'"causes":"objects.jsonl:\d', named)


def test_lines_in_any_order(ensue: Ensue, tmp_path: Path, library: Path) -> None:
    lines = broken(readings(300))
    random.Random(1).shuffle(lines)
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join(lines))
    same_on_all_engines(ensue, tmp_path, library, "-e", file)


def as_table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {
            **{name: [each[name] for each in events] for name in ("id", "source", "type")},
            "time": pa.array([each["time"] for each in events]).cast(pa.timestamp("ns", "UTC")),
            **{
                name: pa.array([each["data"][name] for each in events])
                for name in ("host", "level", "site")
            },
        }
    )


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_tables_give_what_lines_give(
    ensue: Ensue, tmp_path: Path, library: Path, ending: str, shuffled: bool
) -> None:
    events = readings(300)
    lines, file = tmp_path / "events.jsonl", tmp_path / f"events.{ending}"
    lines.write_text("\n".join(map(json.dumps, events)))
    if shuffled:
        # Equal times stay in the order given, so there must be none.
        events = random.Random(3).sample(events, len(events))
    table = as_table(events)
    if ending == "parquet":
        pq.write_table(table, file, row_group_size=70)
    elif ending == "arrow":
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    else:
        pyarrow.csv.write_csv(table, file)
    wanted = same_on_all_engines(ensue, tmp_path, library, "-e", lines)
    found = same_on_all_engines(ensue, tmp_path, library, "-e", file)
    assert without_data_order(found) == without_data_order(wanted)


def without_data_order(lines: bytes) -> list[Any]:
    return [json.loads(line) for line in lines.splitlines()]


def test_files_of_several_formats_are_one_input(
    ensue: Ensue, tmp_path: Path, library: Path
) -> None:
    events = readings(400)
    paths = [tmp_path / name for name in ("a.jsonl", "b.csv", "c.parquet", "d.jsonl")]
    paths[0].write_text("\n".join(map(json.dumps, events[0::4])))
    pyarrow.csv.write_csv(as_table(events[1::4]), paths[1])
    pq.write_table(as_table(events[2::4]), paths[2])
    paths[3].write_text("\n".join(map(json.dumps, events[3::4])))
    given = [each for path in paths for each in ("-e", path)]
    found = same_on_all_engines(ensue, tmp_path, library, *given)
    whole = tmp_path / "whole.jsonl"
    whole.write_text("\n".join(map(json.dumps, events)))
    wanted = same_on_all_engines(ensue, tmp_path, library, "-e", whole)
    assert without_data_order(found) == without_data_order(wanted)


def test_plain_objects_by_a_mapping(ensue: Ensue, tmp_path: Path, library: Path) -> None:
    file = tmp_path / "log.jsonl"
    rows = [
        {
            "ts": f"2024-05-06 {n // 60:02}:{n % 60:02}:00",
            "what": {"kind": "High" if n % 3 else "Reading"},
            "host": "a",
            "level": n,
        }
        for n in range(200)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    made = same_on_all_engines(
        ensue, tmp_path, library, "-e", file, "--columns", "time=ts,type=what.kind",
        "--columns", "type=what.kind", "--timezone", "Europe/Berlin",
    )  # fmt: skip
    assert b'"time":"2024-05-05T22:' in made


def read_back(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path)) as file:
            rows = pa.ipc.open_file(file).read_all().to_pylist()
    elif path.suffix == ".arrows":
        with pa.OSFile(str(path)) as file:
            rows = pa.ipc.open_stream(file).read_all().to_pylist()
    else:
        rows = pyarrow.csv.read_csv(path).to_pylist()
    return [{name: value for name, value in row.items() if value not in (None, "")} for row in rows]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows", "csv"])
@pytest.mark.parametrize("engine", ["batch", "step"])
def test_outputs_are_written_by_the_ending_of_their_name(
    ensue: Ensue, tmp_path: Path, library: Path, ending: str, engine: str
) -> None:
    file, lines, out = tmp_path / "e.jsonl", tmp_path / "out.jsonl", tmp_path / f"out.{ending}"
    file.write_text("\n".join(map(json.dumps, readings(300))))
    ensue("run", library, "-e", file, "--out", lines, "--engine", engine)
    answer = ensue("run", library, "-e", file, "--out", out, "--engine", engine)
    assert answer.code == 0, answer.err
    wanted = [json.loads(line) for line in lines.read_bytes().splitlines()]
    found = read_back(out)
    assert [each["id"] for each in found] == [each["id"] for each in wanted]
    for name in ("correlation", "trigger", "causes", "partitionkey"):
        assert [str(each.get(name)) for each in found] == [str(each.get(name)) for each in wanted]
    assert [each.get("level") for each in found] == [each["data"].get("level") for each in wanted]


def test_no_outputs_are_a_file_with_columns_and_no_rows(
    ensue: Ensue, tmp_path: Path, library: Path
) -> None:
    file, out = tmp_path / "e.jsonl", tmp_path / "out.parquet"
    file.write_text("")
    ensue("run", library, "-e", file, "--out", out, "--engine", "batch")
    table = pq.read_table(out)
    assert table.num_rows == 0
    assert {"id", "time", "host", "correlation"} <= set(table.schema.names)


def test_only_one_correlation(ensue: Ensue, tmp_path: Path, library: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text("\n".join(map(json.dumps, readings(300))))
    for name in ("Rising", "Loud", "Silence"):
        made = same_on_all_engines(ensue, tmp_path, library, "-e", file, "--correlation", name)
        assert {json.loads(line)["correlation"] for line in made.splitlines()} == {name}


def test_a_strict_run_leaves_the_old_result(ensue: Ensue, tmp_path: Path, library: Path) -> None:
    file, out = tmp_path / "e.jsonl", tmp_path / "out.jsonl"
    out.write_text("old")
    file.write_bytes(b"\n".join(broken(readings(30))))
    for engine in ("batch", "step"):
        answer = ensue("run", library, "-e", file, "--strict", "--engine", engine, "--out", out)
        assert answer.code == 1
        assert f"{file}:1: " in answer.err
        assert f"{file}:11: " not in answer.err
        assert "; 0 outputs\n" in answer.err
        assert out.read_text() == "old"
        assert sorted(each.name for each in tmp_path.iterdir()) == [
            "e.jsonl", "out.jsonl", "rules.cor",
        ]  # fmt: skip


def test_the_standard_input_is_read_in_columns_too(
    ensue: Ensue, tmp_path: Path, library: Path
) -> None:
    lines = broken(readings(300))
    random.Random(1).shuffle(lines)
    given = b"\n".join(lines)
    step = ensue("run", library, "-e", "-", "--engine", "step", stdin=given)
    batch = ensue("run", library, "-e", "-", "--engine", "batch", stdin=given)
    assert batch.out == step.out
    assert batch.err == step.err


def test_a_column_that_is_not_there_is_named(ensue: Ensue, tmp_path: Path, library: Path) -> None:
    file = tmp_path / "e.csv"
    file.write_text("when,kind\n")
    for engine in ("batch", "step"):
        answer = ensue(
            "run", library, "-e", file, "--columns", "time=ts,type=kind", "--engine", engine
        )
        assert answer.code == 2
        assert "no column for what the mapping looks for: `time` in `ts`" in answer.err
