"""What people call by mistake is answered with the call to make."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.cli.start.catalogue import ENTRIES
from tests.cli.conftest import Ensue


def test_events_among_the_libraries_are_named_by_their_option(
    ensue: Ensue, rules: Path, events: Path
) -> None:
    answer = ensue("run", rules, events)

    assert (answer.code, answer.out) == (2, "")
    assert f"write `ensue run {rules} --events {events}`" in answer.err


def test_a_run_without_events_says_how_to_name_them(ensue: Ensue, rules: Path) -> None:
    assert f"write `ensue run {rules} --events events.jsonl`" in ensue("run", rules).err


def test_a_library_without_rules_is_good_and_that_is_said(
    ensue: Ensue, events: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.cor"
    empty.write_text("// nothing yet\n")

    checked, run = ensue("check", empty), ensue("run", empty, "--events", events)

    assert (checked.code, checked.out) == (0, "good: 0 event types, 0 correlations\n")
    assert "the library has no correlation yet" in checked.err
    assert run.code == 0
    assert "has no correlation, so there can be no output" in run.err


@pytest.mark.parametrize("name", ["found.xlsx", "found.jsonl.gz", "found.AVRO"])
def test_no_file_is_written_that_belies_its_name(
    ensue: Ensue, rules: Path, events: Path, tmp_path: Path, name: str
) -> None:
    answer = ensue("run", rules, "--events", events, "--out", tmp_path / name)

    assert answer.code == 2
    assert "cannot be written: choose `.parquet`" in answer.err
    assert not (tmp_path / name).exists()


def test_a_library_that_is_tested_is_to_be_checked(ensue: Ensue, rules: Path) -> None:
    answer = ensue("test", rules)

    assert answer.code == 2
    assert f"`ensue check {rules}` checks it" in answer.err


def test_a_history_that_is_not_there_is_no_empty_one(ensue: Ensue, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'slip.db'}"

    for answer in (
        ensue("history", "find", url),
        ensue("history", "replay", url, "--filter", "TRUE"),
    ):
        assert answer.code == 2
        assert f"there is no history `{url}`" in answer.err
    assert not (tmp_path / "slip.db").exists()


@pytest.mark.parametrize("command", [*ENTRIES, "history add", "rules put"])
def test_help_has_no_words_of_python(ensue: Ensue, command: str) -> None:
    help_of = ensue(*command.split(), "--help").out

    for word in ("<str>", "<path>", "<list[", "[[", "{LIB", "<int", "<float"):
        assert word not in help_of.replace("[[case]]", "")
    assert max(map(len, help_of.splitlines())) <= 80


def test_help_fits_a_narrow_terminal(ensue: Ensue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")

    lines = ensue("--help").out.splitlines()

    assert max(map(len, lines)) <= 40


ONE = '"id":"1","source":"s","type":"Failed","time":"2024-05-06T07:00:00Z"'
FILES = {
    "array.json": (
        f'[{{{ONE},"data":{{"user":"ann"}}}}]\n',
        "`jq -c '.[]' array.json > lines.jsonl`",
    ),
    "laid-out.json": (f"{{\n  {ONE}\n}}\n", "`jq -c '.' laid-out.json > lines.jsonl`"),
    "numbers.csv": ("time,type,user\n1714978800,Failed,ann\n", "`--columns time=time:s`"),
    "millis.csv": ("time,type,user\n1714978800123,Failed,ann\n", "`--columns time=time:ms`"),
    "beside.jsonl": (f'{{{ONE},"user":"ann"}}\n', "`--columns time=time` makes all members"),
    "without-id.jsonl": (
        '{"type":"Failed","time":"2024-05-06T07:00:00Z","data":{"user":"ann"}}\n',
        "`--columns time=time` reads the records as plain objects",
    ),
    "flat.jsonl": (
        '{"timestamp":"2024-05-06 07:00:00","user":"ann"}\n',
        "as in `--columns time=timestamp`",
    ),
    "without-type.jsonl": (
        '{"id":"1","source":"s","time":"2024-05-06T07:00:00Z","data":{"user":"ann"}}\n',
        "objects without a `type`: `--type NAME` names the type of all events",
    ),
    "apache.log": (
        "[Sun Dec 04 04:47:44 2005] [notice] workerEnv.init() ok\n",
        "`--format csv --delimiter space --header NAME,...` reads the words of a line",
    ),
    "number.jsonl": (
        f'{{{ONE},"data":{{"user":7}}}}\n',
        "the values of `user` are numbers: write `attribute long user;` in `Failed`",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_which_nothing_could_be_read_is_answered_with_what_to_do(
    ensue: Ensue, rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text, advice = FILES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)

    answer = ensue("run", rules, "--events", name)

    assert answer.code == 1
    assert advice in answer.err


def test_a_unit_of_times_in_text_is_told_to_be_left_out(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    path = tmp_path / "flat.jsonl"
    path.write_text('{"ts":"2024-05-06 07:00:00","user":"ann"}\n')

    answer = ensue("run", rules, "-e", path, "--columns", "time=ts:ms", "--type", "Failed")

    assert "times in text have no unit, leave out `:ms`" in answer.err


def test_a_time_that_lacks_only_its_offset_is_not_called_missing(
    ensue: Ensue, rules: Path, tmp_path: Path
) -> None:
    path = tmp_path / "flat.jsonl"
    path.write_text('{"ts":"2024-05-06 07:00:00","user":"ann"}\n')

    answer = ensue("run", rules, "-e", path, "--columns", "time=ts", "--type", "Failed")

    assert "`--timezone UTC`" in answer.err
    assert "objects without a `time`" not in answer.err


SILENCE = """
eventtype Beat { attribute string host; }
eventtype Silent { attribute string host; }
Silent correlation Quiet (Beat b) b ; timeout(5 min) unless b by host
{ case true: push new Silent { host = b.host }; }
"""


def test_a_timer_that_the_last_event_leaves_behind_is_told(ensue: Ensue, tmp_path: Path) -> None:
    rules, beats = tmp_path / "quiet.cor", tmp_path / "beats.csv"
    rules.write_text(SILENCE)
    beats.write_text("time,type,host\n2024-05-06T07:00:00Z,Beat,h\n")
    cases = tmp_path / "cases.toml"
    cases.write_text(
        '[[case]]\nname = "quiet"\nwhy = "forgets until"\nlibrary_file = "quiet.cor"\n'
        "events = ['0 Beat {\"host\": \"h\"}']\noutputs = ['timer@300 Silent']\n"
    )

    run = ensue("run", rules, "-e", beats)
    until = ensue("run", rules, "-e", beats, "--until", "2024-05-06T07:05:00Z")

    assert "`--until 2024-05-06T07:05:00Z` lets it go on" in run.err
    assert len(until.outputs) == 1
    assert "lets it go on" not in until.err
    assert "`until = 300` lets it go on to the timer" in ensue("test", cases).out
