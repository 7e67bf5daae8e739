"""`ensue demo`: the story, and that it is true."""

from __future__ import annotations

from pathlib import Path

from ensue.cli.commands.demo import NOT_FOUND
from tests.cli.conftest import Ensue


def test_it_shows_the_rule_the_events_and_what_follows(ensue: Ensue) -> None:
    answer = ensue("demo")

    assert (answer.code, answer.err) == (0, "")
    assert "Warning correlation GuessedPassword (" in answer.out
    assert "09:00:12  Done    ann    203.0.113.9     <- lock the account" in answer.out
    assert "ann   lock the account: three failures" in answer.out
    assert "event 7 completed the rule; label outside was active; causes: 5 and 7" in answer.out


def test_it_fits_80_columns_and_has_no_colour_in_a_pipe(ensue: Ensue) -> None:
    answer = ensue("demo")

    assert max(map(len, answer.out.splitlines())) <= 80
    assert "\x1b" not in answer.out


def test_those_who_are_said_not_to_be_found_are_not_and_all_others_are(
    ensue: Ensue, tmp_path: Path
) -> None:
    ensue("demo", "--write", tmp_path)
    answer = ensue("run", tmp_path / "logins.cor", "-e", tmp_path / "logins.jsonl")
    found = {output["data"]["user"] for output in answer.outputs}
    lines = (tmp_path / "logins.jsonl").read_text().splitlines()
    everybody = {line.split('"user": "')[1].split('"')[0] for line in lines}

    assert found == {"ann", "bob"}
    assert everybody - found == NOT_FOUND.keys()


def test_the_library_of_the_demo_has_no_warnings(ensue: Ensue, tmp_path: Path) -> None:
    ensue("demo", "--write", tmp_path / "new" / "folder")

    answer = ensue("check", tmp_path / "new" / "folder" / "logins.cor")

    assert answer.out == "good: 4 event types, 1 correlation\n"


def test_it_writes_over_nothing(ensue: Ensue, tmp_path: Path) -> None:
    (tmp_path / "logins.cor").write_text("mine")

    answer = ensue("demo", "--write", tmp_path)

    assert answer.code == 2
    assert "exists already" in answer.err
    assert (tmp_path / "logins.cor").read_text() == "mine"
    assert not (tmp_path / "logins.jsonl").exists()
