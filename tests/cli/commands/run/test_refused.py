"""`ensue run`: records that are no events, and what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Ensue, event

GOOD = [event(1, "Failed", 0), event(2, "Done", 1)]
BAD = ["{broken", '{"id": "x"}', event(3, "Failed", 2, user=7)]  # type: ignore[arg-type]


def write(folder: Path, lines: list[str]) -> Path:
    path = folder / "events.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_each_is_named_with_its_line_and_all_its_problems_and_the_run_goes_on(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    path = write(tmp_path, [BAD[0], GOOD[0], BAD[1], BAD[2], GOOD[1]])

    answer = ensue("run", rules, "-e", path)

    first, second, third, summary = answer.err.splitlines()
    assert answer.code == 0
    assert len(answer.outputs) == 1
    assert first.startswith(f"{path}:1: no JSON")
    assert second.startswith(f"{path}:3: ")
    assert all(f"`{name}`" in second for name in ("source", "type", "time"))
    assert third.startswith(f"{path}:4: attribute `user` of `Failed`")
    assert summary == "2 events read, 3 refused; 1 output"


def test_on_the_standard_input_the_line_is_named_too(ensue: Ensue, rules: Path) -> None:
    assert ensue("run", rules, "-e", "-", stdin="\n\n{").err.startswith("stdin:3: ")


def test_dead_letters_are_the_lines_as_they_were(ensue: Ensue, rules: Path, tmp_path: Path) -> None:
    odd = '  {"id": "x",\t "é": 1}  '
    path = write(tmp_path, [GOOD[0], odd, *BAD])
    dead = tmp_path / "dead.jsonl"

    answer = ensue("run", rules, "-e", path, "--dead-letter", dead)

    assert dead.read_text().splitlines() == [odd, *BAD]
    assert f"4 refused (kept in `{dead}`)" in answer.err


def test_bytes_that_are_no_text_survive_as_a_dead_letter(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    dead = tmp_path / "dead.jsonl"

    ensue("run", rules, "-e", "-", "--dead-letter", dead, stdin=b'{"id": "\xff\x00"}\r\n')

    assert dead.read_bytes() == b'{"id": "\xff\x00"}\n'


def test_mended_dead_letters_can_be_run_again(ensue: Ensue, rules: Path, tmp_path: Path) -> None:
    path = write(tmp_path, [BAD[2].replace("Failed", "Done"), GOOD[0]])
    dead = tmp_path / "dead.jsonl"
    ensue("run", rules, "-e", path, "--dead-letter", dead)

    dead.write_text(dead.read_text().replace("7", '"ann"') + GOOD[0])

    assert len(ensue("run", rules, "-e", dead).outputs) == 1


def test_a_row_of_csv_is_kept_with_its_number_and_its_problems(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    dead = tmp_path / "dead.jsonl"
    text = b"type,time,user\nFailed,never,ann\nFailed,2024-05-06T09:00:00Z\nDone,\xff,x\n"

    answer = ensue("run", rules, "-e", "-", "--format", "csv", "--dead-letter", dead, stdin=text)

    first, second, third = (json.loads(line) for line in dead.read_text().splitlines())
    assert answer.code == 1
    assert (first["number"], first["row"]) == (2, "Failed,never,ann")
    assert "`never` is no RFC 3339 time" in first["problems"][0]
    assert "2 cells" in second["problems"][0]
    assert third["row_base64"] == "RG9uZSz/LHg="


def test_a_row_of_parquet_is_kept_as_an_object(ensue: Ensue, rules: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    dead, path = tmp_path / "dead.jsonl", tmp_path / "events.parquet"
    columns = {"type": ["Failed"], "time": ["never"], "user": ["ann"]}
    pq.write_table(pa.table(columns), path)

    answer = ensue("run", rules, "-e", path, "--dead-letter", dead)

    letter = json.loads(dead.read_text())
    assert answer.err.startswith(f"{path}:1: ")
    assert letter["number"] == 1
    assert letter["row"] == {"type": "Failed", "time": "never", "user": "ann"}


def test_a_cause_is_named_once_for_each_file_with_its_first_place(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        good = [event(n, "Failed", n) for n in range(3)]
        wrong = [event(n, "Failed", n).replace('"ann"', str(n)) for n in (7, 8)]
        odd = [event(n, "Failed", n).replace("2024-05-06", f"yesterday {n}") for n in range(4)]
        lines = [*good, *odd, *wrong]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")

    answer = ensue("run", rules, "-e", f"{tmp_path}/*.jsonl")

    named = [line.removeprefix(f"{tmp_path}/") for line in answer.err.splitlines()]
    found = [line.split(": ")[:2] for line in named if line[:2] in ("a.", "b.")]
    assert found == [
        [f"{name}.jsonl:{line} and {more} more", about]
        for name in ("a", "b")
        for line, more, about in ((4, 3, "`time`"), (8, 1, "attribute `user` of `Failed`"))
    ]


def test_every_one_of_a_flood_is_kept_and_counted_and_named_on_request(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    dead = tmp_path / "dead.jsonl"
    asked = (rules, "-e", "-", "--dead-letter", dead)
    once = ensue("run", *asked, stdin="{\n" * 5_000)
    assert len([line for line in once.err.splitlines() if "no JSON" in line]) == 1
    assert "stdin:1 and 4,999 more: no JSON" in once.err

    answer = ensue("run", *asked, "--verbose", stdin="{\n" * 5_000)

    assert len([line for line in answer.err.splitlines() if "no JSON" in line]) == 5_000
    assert "stdin:5000: " in answer.err
    assert "5,000 refused" in answer.err
    assert len(dead.read_text().splitlines()) == 5_000


def test_a_very_long_bad_line_gives_a_short_message(ensue: Ensue, rules: Path) -> None:
    answer = ensue("run", rules, "-e", "-", stdin='{"id": ' + "x" * 1_000_000)

    assert len(answer.err) < 500


class TestStrict:
    def test_the_first_one_stops_the_run_before_anything_is_put_out(
        self, ensue: Ensue, rules: Path, tmp_path: Path
    ) -> None:
        path = write(tmp_path, [*GOOD, BAD[0], BAD[1]])

        answer = ensue("run", rules, "-e", path, "--strict")

        assert (answer.code, answer.out) == (1, "")
        assert f"{path}:3: no JSON" in answer.err
        assert f"{path}:4: " not in answer.err
        assert "stopped" in answer.err

    def test_a_stream_has_put_out_what_came_before_it(
        self, ensue: Ensue, rules: Path, tmp_path: Path
    ) -> None:
        path = write(tmp_path, [*GOOD, BAD[0], event(4, "Failed", 3), event(5, "Done", 4)])

        answer = ensue("run", rules, "-e", path, "--strict", "--lateness", "0 s")

        assert answer.code == 1
        assert [output["trigger"] for output in answer.outputs] == ["2"]

    def test_it_is_kept_as_a_dead_letter_all_the_same(
        self, ensue: Ensue, rules: Path, tmp_path: Path
    ) -> None:
        dead = tmp_path / "dead.jsonl"

        ensue("run", rules, "-e", "-", "--strict", "--dead-letter", dead, stdin=BAD[0])

        assert dead.read_text() == BAD[0] + "\n"

    def test_good_input_is_run(self, ensue: Ensue, rules: Path, events: Path) -> None:
        assert ensue("run", rules, "-e", events, "--strict").code == 0
