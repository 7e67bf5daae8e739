"""The power fails: what was said to be on the disk is there, old files are whole or replaced."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ensue.cli import main
from ensue.history import History
from ensue.server.station.entries import EVENT, JournalEntry
from ensue.server.station.record.journal import ServerJournal

from .disk import ForgetfulDisk

RULES = """
eventtype Login { attribute string user; };
eventtype Twice { attribute string user; };
Twice correlation Pair (Login a) a{2} by user { case true: push new Twice { user = a.user }; }
"""
INDEX = "_index.db"


def login(number: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "source": "gate",
        "type": "Login",
        "time": f"2026-01-01T00:00:{number:02}Z",
        "data": {"user": "ann"},
    }


def test_a_history_in_parquet_has_every_event_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    disk = ForgetfulDisk(folder, monkeypatch)
    with History.open(f"parquet:{folder}") as history:
        for number in range(5):
            history.add(login(number))
            found_again = tmp_path / f"after-{number}"
            found_again.mkdir()
            for name, content in disk.surviving().items():
                if not name.startswith(INDEX):
                    (found_again / name).write_bytes(content)
            with History.open(f"parquet:{found_again}") as kept:
                assert [event.id for event in kept.replay()] == [str(n) for n in range(number + 1)]


def test_an_output_file_is_the_old_one_or_the_new_one_at_every_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    rules, events, out = tmp_path / "r.cor", tmp_path / "e.jsonl", folder / "alerts.jsonl"
    rules.write_text(RULES)
    events.write_text("".join(json.dumps(login(number)) + "\n" for number in range(4)))
    out.write_bytes(b"the old alerts\n")
    disk = ForgetfulDisk(folder, monkeypatch)
    seen: list[bytes] = []
    disk.when_something_happens = lambda: seen.append(disk.surviving()[out.name])

    with pytest.raises(SystemExit) as ended:
        main(["run", str(rules), "-e", str(events), "--out", str(out)])

    new = out.read_bytes()
    assert ended.value.code == 0
    assert len(new.splitlines()) == 2
    assert set(seen) <= {b"the old alerts\n", new}
    assert disk.surviving() == {out.name: new}


class _Demanding(sqlite3.Connection):
    """A connection that tells, when it closes, what it has demanded of its commits."""

    demanded: list[int]

    def close(self) -> None:
        if self.total_changes:
            self.demanded.append(self.execute("PRAGMA synchronous").fetchone()[0])
        super().close()


def test_a_commit_of_the_server_and_of_a_history_in_sqlite_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, demanded = sqlite3.connect, list[int]()

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, factory=_Demanding, **options)
        connection.demanded = demanded
        return connection

    for module in (sqlite3, sqlite3.dbapi2):
        monkeypatch.setattr(module, "connect", connected)
    journal = ServerJournal(tmp_path / "journal.db")
    with journal.write():
        journal.append([JournalEntry(1, EVENT, b"{}")])
    journal.close()
    after_journal = len(demanded)
    with History.open(f"sqlite:{tmp_path / 'history.db'}") as history:
        history.add(login(1))

    full = 2
    assert after_journal
    assert len(demanded) > after_journal
    assert set(demanded) == {full}
