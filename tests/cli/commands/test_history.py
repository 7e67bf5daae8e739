"""`ensue history`: what it keeps, finds and replays, and what it says of the rest."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Ensue

RULES = """
eventtype Login { attribute string user; attribute boolean failed; }
eventtype Alarm { attribute string user; }

Alarm correlation Burst (Login a where failed = TRUE AND start AFTER(5 s, 2 TIMES) (failed = TRUE))
    burst:(a)
{
    case burst: push new Alarm { user = a.user };
}

Alarm correlation Guessing (Login wrong where failed = TRUE, Login right where failed = FALSE)
    tries:(wrong ; right) by user
{
    case tries: push new Alarm { user = right.user };
}
"""


@pytest.fixture
def logins(tmp_path: Path) -> Path:
    lines = [
        {
            "id": f"e{number}",
            "source": "door",
            "type": "Login",
            "time": f"2024-05-06T07:00:{number:02}Z",
            "data": {"user": "ann", "failed": number % 4 != 3},
        }
        for number in range(12)
    ]
    path = tmp_path / "logins.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "rules.cor"
    path.write_text(RULES, "utf-8")
    return path


def test_events_are_kept_and_found_again(ensue: Ensue, logins: Path, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'events.db'}"

    added = ensue("history", "add", url, "--events", logins)
    found = ensue("history", "find", url, "failed = FALSE AND start AFTER(5 s) (failed = FALSE)")
    some = ensue("history", "find", url, "--since", "2024-05-06T07:00:05Z", "--limit", 2)

    assert (added.code, added.err) == (0, f"12 events kept in `{url}`\n")
    assert [each["id"] for each in found.outputs] == ["e7", "e11"]
    assert [each["id"] for each in some.outputs] == ["e5", "e6"]


def test_a_replay_puts_out_what_the_run_did(
    ensue: Ensue, logins: Path, memory: Path, tmp_path: Path
) -> None:
    kept, other = f"sqlite:{tmp_path / 'a.db'}", f"parquet:{tmp_path / 'events'}"

    live = ensue("run", memory, "--events", logins, "--history", kept)
    ensue("history", "add", other, "--events", logins)
    replayed = ensue("history", "replay", kept, memory)
    again = ensue("history", "replay", other, memory, "--engine", "batch")
    burst = ensue("history", "replay", other, memory, "--correlation", "Burst")

    assert {each["correlation"] for each in live.outputs} == {"Burst", "Guessing"}
    assert replayed.outputs == again.outputs == live.outputs
    assert {each["correlation"] for each in burst.outputs} == {"Burst"}
    assert "warning" not in live.err + replayed.err


def test_a_subscription_is_tried(ensue: Ensue, logins: Path, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'events.db'}"
    ensue("history", "add", url, "--events", logins)

    tried = ensue("history", "replay", url, "--filter", "NOT start AFTER(2 s) (TRUE)")

    assert [each["id"] for each in tried.outputs] == ["e0"]
    assert tried.err == "1 event would have matched\n"


def test_what_cannot_be_kept_is_named_and_the_rest_is_kept(
    ensue: Ensue, logins: Path, tmp_path: Path
) -> None:
    url, dead = f"sqlite:{tmp_path / 'events.db'}", tmp_path / "dead.jsonl"
    bad = {"id": "b", "source": "s", "type": "T", "time": "2024-05-06T07:00:00Z", "phase": "now"}
    with logins.open("a", encoding="utf-8") as file:
        file.write('{"id": "a"}\n' + json.dumps(bad) + "\n")

    answer = ensue("history", "add", url, "--events", logins, "--dead-letter", dead)
    strict = ensue("history", "add", url, "--events", logins, "--strict")

    assert answer.code == 0
    assert "`phase` must be `start`, `end` or `instant`" in answer.err
    assert "12 events kept" in answer.err
    assert len(dead.read_text("utf-8").splitlines()) == 2
    assert strict.code == 1


def test_retention_is_applied_as_events_are_kept(
    ensue: Ensue, logins: Path, tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path / 'events.db'}"
    ensue("history", "add", url, "--events", logins, "--max-count", 3)

    found = ensue("history", "find", url)

    assert [each["id"] for each in found.outputs] == ["e9", "e10", "e11"]


def test_an_old_result_stays_until_the_new_one_is_whole(
    ensue: Ensue, logins: Path, tmp_path: Path
) -> None:
    url, out = f"sqlite:{tmp_path / 'events.db'}", tmp_path / "out.jsonl"
    out.write_text("old\n")
    ensue("history", "add", url, "--events", logins)
    with closing(sqlite3.connect(tmp_path / "events.db")) as database, database:
        database.execute("UPDATE ensue_events SET body = x'00'")

    assert ensue("history", "find", url, "--out", out).code == 2
    assert out.read_text() == "old\n"


def test_a_history_is_not_written_over_by_what_is_found_in_it(
    ensue: Ensue, rules: Path, logins: Path, tmp_path: Path
) -> None:
    file, link = tmp_path / "events", tmp_path / "link"
    ensue("history", "add", f"sqlite:{file}", "--events", logins)
    link.hardlink_to(file)
    kept = file.read_bytes()

    for answer in (
        ensue("history", "find", f"sqlite:{file}", "--out", link),
        ensue("history", "replay", f"sqlite:{file}", rules, "--out", link),
        ensue("run", rules, "--events", logins, "--history", f"sqlite:{file}", "--out", link),
    ):
        assert answer.code == 2
        assert "choose another file" in answer.err
    assert file.read_bytes() == kept


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("find", "nowhere"), "no address of a history"),
        (("find", "memory:", "a = = 1"), "cannot stand here"),
        (("find", "memory:", "--since", "yesterday"), "`--since`"),
        (("replay", "memory:"), "needs either the files of a library or `--filter`"),
        (("replay", "memory:", "RULES", "--engine", "spark"), "needs a `parquet:` history"),
        (("replay", "memory:", "RULES", "--engine", "quick"), "no engine `quick`"),
        (("add", "memory:", "--events", "none.jsonl"), "none.jsonl"),
    ],
)
def test_a_wrong_call_is_answered(
    ensue: Ensue, memory: Path, arguments: tuple[str, ...], said: str
) -> None:
    answer = ensue("history", *(memory if each == "RULES" else each for each in arguments))

    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
