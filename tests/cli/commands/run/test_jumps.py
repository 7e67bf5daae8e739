"""`ensue run` and events whose clock is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Ensue

RULES = """
eventtype A { attribute string k; };
eventtype Out {};
Out correlation Quiet (A a, deadline 1 min d) d by k { case true: push new Out {}; }
"""
TIMES = ["2024-05-06T07:00:00Z", "9999-12-31T23:59:59Z", "2024-05-06T07:02:30Z"]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "timed.cor"
    path.write_text(RULES)
    return path


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    lines = [
        json.dumps({"id": str(n), "source": "s", "type": "A", "time": time, "data": {"k": "x"}})
        for n, time in enumerate(TIMES)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("engine", ["reference", "step", "batch", "auto"])
@pytest.mark.parametrize("stream", [[], ["--lateness", "5 min"]])
def test_an_event_of_the_far_future_is_refused_and_kept(
    ensue: Ensue, rules: Path, events: Path, tmp_path: Path, engine: str, stream: list[str]
) -> None:
    letters = tmp_path / "letters.jsonl"
    answer = ensue(
        "run", rules, "-e", events, "--engine", engine, "--dead-letter", letters, *stream
    )

    assert (answer.code, len(answer.outputs)) == (0, 2)
    assert f"{events}:2: its time, 9999-12-31T23:59:59Z, is too far ahead" in answer.err
    assert "2 events read, 1 refused" in answer.err
    assert letters.read_text() == events.read_text().splitlines(keepends=True)[1]


@pytest.mark.parametrize("engine", ["reference", "step", "batch"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_row_of_the_far_future_is_named_by_its_file_and_kept_as_it_was(
    ensue: Ensue, rules: Path, tmp_path: Path, engine: str, ending: str
) -> None:
    (tmp_path / "in").mkdir()
    for name, times in (("x", TIMES), ("y", TIMES[::-1])):
        table = pa.table({"at": times, "kind": ["A"] * 3, "k": ["x"] * 3, "other": [1, 2, 3]})
        write = pacsv.write_csv if ending == "csv" else pq.write_table
        write(table, tmp_path / "in" / f"{name}.{ending}")
    letters = tmp_path / "letters.jsonl"
    mapping = ["--columns", "time=at,type=kind"]

    answer = ensue(
        "run", rules, "-e", tmp_path / "in", "--engine", engine, "--dead-letter", letters, *mapping
    )

    number = 3 if ending == "csv" else 2
    for name in "xy":
        assert f"{tmp_path}/in/{name}.{ending}:{number}: its time" in answer.err
    row: Any = {"at": TIMES[1], "kind": "A", "k": "x", "other": 2}
    if ending == "csv":
        row = f'"{TIMES[1]}","A","x",2'
    kept = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [(each["number"], each["row"]) for each in kept] == [(number, row)] * 2
    assert "4 events read, 2 refused" in answer.err


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_types_of_events_that_were_refused_for_their_time_are_not_read(
    ensue: Ensue, tmp_path: Path, engine: str
) -> None:
    rules, events = tmp_path / "timed.cor", tmp_path / "events.csv"
    rules.write_text("eventtype Z {};\n" + RULES)
    rows = [f"{n},{'Z' if '9999' in time else 'A'},{time},x" for n, time in enumerate(TIMES)]
    events.write_text("\n".join(["id,type,time,k", *rows, ""]))

    answer = ensue("run", rules, "-e", events, "--engine", engine)

    assert "2 events read, 1 refused" in answer.err
    assert "read by no rule" not in answer.err


def test_an_event_that_comes_among_others_later_is_named_by_its_file(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    lines = [
        json.dumps({"id": str(n), "source": "s", "type": "A", "time": time, "data": {"k": "x"}})
        for n, time in enumerate(TIMES)
    ]
    (tmp_path / "x.jsonl").write_text(f"{lines[0]}\n{lines[1]}\n")
    (tmp_path / "y.jsonl").write_text(f"{lines[2]}\n")
    inputs = ["-e", tmp_path / "x.jsonl", "-e", tmp_path / "y.jsonl"]

    answer = ensue("run", rules, *inputs, "--live")

    assert f"{tmp_path}/x.jsonl:2: its time, 9999-12-31T23:59:59Z, is" in answer.err


def test_a_jump_may_be_set(ensue: Ensue, rules: Path, events: Path) -> None:
    answer = ensue("run", rules, "-e", events, "--max-jump", "2 min")

    assert (len(answer.outputs), answer.err.count("is too far ahead")) == (0, 2)


def test_with_strict_the_run_stops_there(ensue: Ensue, rules: Path, events: Path) -> None:
    assert ensue("run", rules, "-e", events, "--strict").code == 1


def test_a_jump_that_is_no_duration_is_a_wrong_call(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "-e", events, "--max-jump", "far")

    assert answer.code == 2
    assert "`far` is no duration" in answer.err


def test_a_clock_told_to_go_on_for_ever_is_a_wrong_call(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "-e", events, "--until", "9999-01-01T00:00:00Z")

    assert answer.code == 2
    assert "max_jump" in answer.err
