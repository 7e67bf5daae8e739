"""What is kept and what is not: retention, opening again, and a process that is killed."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import event

from ensue.errors import EventError, HistoryError, UsageError
from ensue.history import History
from tests.history.test_publications import publication
from tests.servers.databases import Database

WRITER = """
import sys
from ensue.history import History
from tests.history.test_publications import publication

with History.open(sys.argv[1]) as history:
    number = 0
    while True:
        size = number % 7 + 1
        batch = [publication(number + i, number % 60, data={"n": number + i}) for i in range(size)]
        if size == 1:
            history.add(batch[0])
        else:
            history.add_all(batch)
        number += size
        print(number, flush=True)
"""


def test_what_was_added_is_there_when_it_is_opened_again(lasting_url: str) -> None:
    with History.open(lasting_url) as history:
        history.add_all(publication(number, number, data={"n": number}) for number in range(20))
        history.add(publication(30, 30, phase="start"))
    with History.open(lasting_url) as history:
        history.add(publication(30, 40, phase="end"))
        assert len(history) == 21
        assert history.find("n = 7")[0].id == "e7"
        assert history.matches("start AFTER(5 s) (id = 'e30')", publication(99, 45))


def test_everything_acknowledged_is_there_after_a_kill(lasting_url: str) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, lasting_url],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    acknowledged = 0
    assert writer.stdout is not None
    for line in writer.stdout:
        acknowledged = int(line)
        if acknowledged > 150:
            # It is in the middle of something: it never does anything but write.
            writer.send_signal(signal.SIGKILL)
            break
    rest = writer.stdout.read().split()
    acknowledged = int(rest[-1]) if rest else acknowledged
    writer.wait()

    with History.open(lasting_url) as history:
        found = sorted(int(each.id[1:]) for each in history.find())
        assert found[:acknowledged] == list(range(acknowledged))
        # A batch is kept as a whole or not at all, and by every index alike.
        assert found == list(range(len(found)))
        assert len(history) == len(found)
        assert len(history.find("n >= 0")) == len(found)
        assert history.find(f"n = {acknowledged - 1}")
        history.add(publication(10**6, 59))
        assert len(history) == len(found) + 1


def test_a_history_that_has_failed_says_so_and_goes_on_when_it_is_back(
    servers: Callable[[str], Database], address: Callable[[str], str]
) -> None:
    url = address("postgresql")
    with History.open(url) as history:
        history.add(publication(1, 1))
        servers("postgresql").pause()
        servers("postgresql").resume()
        with suppress(HistoryError):
            # A connection that was open may be noticed only now.
            history.add(publication(2, 2))
        history.add(publication(2, 2))
        assert [each.id for each in history.find()] == ["e1", "e2"]
        servers("postgresql").pause()
        with pytest.raises(HistoryError, match="cannot be asked now"):
            history.find()
        servers("postgresql").resume()
        assert len(history) == 2


def test_a_full_disk_is_told_and_nothing_of_the_write_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "small.db"
    with History.open(f"sqlite:{path}") as history:
        history.add(publication(1, 1))
        pages = sqlite3.connect(path).execute("PRAGMA page_count").fetchone()[0]
        engine = history._store._engine  # type: ignore[attr-defined]

        @event.listens_for(engine, "connect")
        def limit(connection: Any, _: Any) -> None:
            connection.execute(f"PRAGMA max_page_count={pages + 3}")

        engine.dispose()
        with pytest.raises(HistoryError, match="full"):
            history.add_all(
                publication(number, 2, data={"text": "x" * 1000}) for number in range(2, 500)
            )
        assert [each.id for each in history.find()] == ["e1"]


def test_no_more_than_a_number_are_kept_and_the_first_leave_first(url: str) -> None:
    x = publication(99, 59, data={"n": 0})
    with History.open(url, max_count=5) as history:
        for number in range(20):
            history.add(publication(number, number, data={"n": number}))
            assert history.matches("n FILTER(<, 100) (TRUE)", x) == (number > 0)
            assert history.matches("n FILTER(=, 100) (n >= 0)", x) == (number < 5)
        assert [each.id for each in history.find()] == [f"e{n}" for n in range(15, 20)]
        history.add_all(publication(number, 30) for number in range(100, 107))
        assert [each.id for each in history.find()] == [f"e{n}" for n in range(102, 107)]
        assert history.find("n >= 0") == []


def test_what_ended_long_before_the_latest_leaves_and_open_intervals_stay(url: str) -> None:
    with History.open(url, max_age="10 s") as history:
        history.add(publication(1, 0, phase="start"))
        history.add(publication(2, 0, endtime="2024-01-01T00:00:25Z"))
        history.add(publication(3, 1, timeuntil="2024-01-01T00:00:02Z"))
        history.add(publication(4, 14))
        history.add(publication(5, 15))
        history.add(publication(6, 25))
        assert [each.id for each in history.find()] == ["e1", "e2", "e5", "e6"]


def test_a_folder_of_parquet_holds_the_events_as_they_came(tmp_path: Path) -> None:
    with History.open(f"parquet:{tmp_path}") as history:
        for number in range(80):
            history.add(publication(number, number % 60, subject="s", data={"n": number}))
        history.add(publication(80, 1, phase="start"))
        history.add(publication(80, 2, phase="end"))
    files = list(tmp_path.glob("part-*.parquet"))
    assert len(files) < 60, "small files are merged"
    table = pq.read_table(tmp_path)
    assert sorted(table["id"].to_pylist()) == sorted([f"e{n}" for n in range(81)] + ["e80"])
    assert {"subject", "ce_phase", "data", "time"} <= set(table.column_names)


def test_an_index_that_is_lost_or_behind_is_made_from_the_files(tmp_path: Path) -> None:
    url = f"parquet:{tmp_path}"
    with History.open(url) as history:
        history.add_all(publication(number, number, data={"n": number}) for number in range(10))
        history.add(publication(20, 20, phase="start"))
    for each in tmp_path.glob("_index*"):
        each.unlink()
    with History.open(url) as history:
        assert len(history) == 11
        history.add(publication(20, 25, phase="end"))
        assert history.find("n = 3")[0].id == "e3"
        assert history.matches("start AFTER(10 s) (id = 'e20')", publication(30, 30))


def test_a_column_of_parquet_keeps_its_type(tmp_path: Path) -> None:
    with History.open(f"parquet:{tmp_path}") as history:
        history.add(publication(1, 1, rank=5))
        with pytest.raises(EventError, match="ce_rank"):
            history.add_all([publication(2, 2), publication(3, 3, rank="high")])
        assert [each.id for each in history.find()] == ["e1", "e2"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("events.db", "no address"),
        ("redis:x", "no kind of history"),
        ("memory:x", "has no name"),
        ("sqlite:", "names no file"),
        ("sqlite:/nowhere/at/all.db", "cannot be opened"),
        ("postgresql://nobody@127.0.0.1:1/none", "cannot be opened"),
        ("mysql://nobody:secret@127.0.0.1:1/none", "cannot be opened"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as raised:
        History.open(url)
    assert "secret" not in str(raised.value)
