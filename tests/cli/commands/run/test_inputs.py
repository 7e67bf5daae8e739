"""`ensue run` over events as people have them: many files, compressed, of any delimiter."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from tests.cli.conftest import Ensue, event


def triggers(outputs: list[dict[str, str]]) -> list[str]:
    return [output["trigger"] for output in outputs]


@pytest.fixture
def halves(events: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The events in two files, so that neither alone is in order without the other."""
    lines = events.read_text().splitlines()
    first, second = tmp_path / "in" / "first.jsonl", tmp_path / "in" / "second.jsonl"
    first.parent.mkdir()
    first.write_text("\n".join(lines[1::2]) + "\n")
    second.write_text("\n".join(lines[::2]) + "\n")
    return first, second


def test_all_of_several_files_are_read_in_the_order_of_their_times(
    ensue: Ensue, rules: Path, halves: tuple[Path, Path]
) -> None:
    answer = ensue("run", rules, "-e", halves[0], "-e", halves[1])

    assert triggers(answer.outputs) == ["3", "4", "6"]
    assert answer.err == "6 events read; 3 outputs\n"


def test_a_folder_and_a_pattern_stand_for_their_files(
    ensue: Ensue, rules: Path, halves: tuple[Path, Path]
) -> None:
    folder = halves[0].parent
    halves[1].rename(folder / "second.log")

    assert len(ensue("run", rules, "-e", folder).outputs) == 3
    assert ensue("run", rules, "-e", f"{folder}/*.jsonl").err == "3 events read; 1 output\n"


def test_files_of_different_formats_and_compressions_are_one_input(
    ensue: Ensue, rules: Path, halves: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in halves[0].read_text().splitlines()]
    table = pa.table(
        {
            **{name: [row[name] for row in rows] for name in ("id", "source", "type", "time")},
            "user": [row["data"]["user"] for row in rows],
        }
    )
    arrow = tmp_path / "first.arrow"
    with pa.OSFile(str(arrow), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    packed = tmp_path / "second.zst"
    packed.write_bytes(zstandard.compress(halves[1].read_bytes()))

    assert triggers(ensue("run", rules, "-e", arrow, "-e", packed).outputs) == ["3", "4", "6"]


def test_a_compressed_pipe_is_unpacked(ensue: Ensue, rules: Path, events: Path) -> None:
    answer = ensue("run", rules, "-e", "-", stdin=gzip.compress(events.read_bytes()))

    assert triggers(answer.outputs) == ["3", "4", "6"]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_the_delimiter_of_csv_is_seen_in_its_first_line(
    ensue: Ensue, rules: Path, tmp_path: Path, delimiter: str
) -> None:
    path = tmp_path / "events.csv"
    rows = [
        ["time", "type", "user"],
        ["2024-05-06T09:00:00Z", "Failed", "ann"],
        ["2024-05-06T09:00:01Z", "Done", "ann"],
    ]
    path.write_text("".join(delimiter.join(row) + "\n" for row in rows))

    assert triggers(ensue("run", rules, "-e", path).outputs) == ["events.csv:3"]


def test_a_delimiter_can_be_named(ensue: Ensue, rules: Path) -> None:
    text = "time~type~user\n2024-05-06T09:00:00Z~Failed~ann\n2024-05-06T09:00:01Z~Done~ann\n"

    answer = ensue("run", rules, "-e", "-", "--delimiter", "~", stdin=text)

    assert triggers(answer.outputs) == ["stdin:3"]


def test_rows_without_ids_are_known_by_their_files_and_lines(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    for name, rows in (("a", ["00Z,Failed,ann"]), ("b", ["01Z,Failed,bob", "02Z,Done,ann"])):
        lines = ["time,type,user", *(f"2024-05-06T09:00:{row}" for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))

    (output,) = ensue("run", rules, "-e", f"{tmp_path}/*.csv").outputs

    assert output["causes"] == "a.csv:2,b.csv:3"


def test_a_refused_record_is_named_with_its_own_file(
    ensue: Ensue, rules: Path, halves: tuple[Path, Path]
) -> None:
    with halves[1].open("a") as file:
        file.write("no event\n")

    answer = ensue("run", rules, "-e", halves[0], "-e", halves[1])

    assert answer.err.startswith(f"{halves[1]}:4: ")
    assert "1 refused" in answer.err


def test_a_file_that_two_paths_name_is_refused(
    ensue: Ensue, rules: Path, halves: tuple[Path, Path]
) -> None:
    answer = ensue("run", rules, "-e", halves[0], "-e", halves[0].parent)

    assert answer.code == 2
    assert "is read twice" in answer.err


def test_a_file_of_a_folder_is_not_written_to(
    ensue: Ensue, rules: Path, halves: tuple[Path, Path]
) -> None:
    answer = ensue("run", rules, "-e", halves[0].parent, "--out", halves[0])

    assert (answer.code, halves[0].stat().st_size > 0) == (2, True)
    assert "choose another file" in answer.err


def test_a_compressed_file_that_breaks_off_is_said_with_its_name(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join([event(1, "Failed", 0)] * 1000).encode())[:-20])

    answer = ensue("run", rules, "-e", path)

    assert answer.code == 2
    assert f"`{path}` cannot be read: the compressed bytes are damaged" in answer.err


def test_a_file_that_is_named_twice_is_to_be_named_once(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, "-e", events, "-e", events)

    assert answer.code == 2
    assert "is read twice" in answer.err
    assert "name it once" in answer.err
