"""Journals that were damaged or tampered with: our own error, or a server that starts.

    python -m tests.server.station.record.test_damaged_journals START COUNT

tries many more than the tests do.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ensue.errors import EnsueError, HistoryError, UsageError
from ensue.history import History
from ensue.server.channels.hosting import Channels
from ensue.server.station.record.journal import ServerJournal
from tests.server.live import reading, serving, settings

TABLES = ("marks", "journal", "libraries", "versions", "snapshots", "audit", "webhooks")
VALUES: tuple[Any, ...] = (
    *(None, 0, 1, -1, 2**62, -(2**62), 2**63 - 1, 1.5, "", "x", "nan", b"", b"\xff\xfe"),
    *(b"{}", b"[" * 10_000, b"\n\n\n", "heat", b"heat", "5", b"5", b"\x80" * 40),
)


def made(folder: Path) -> Path:
    """The data folder of a server that has taken events and runs a library."""
    data = folder / "data"
    with serving(settings(data)) as live:
        live.put()
        live.publish([reading(n, f"s{n % 3}", 20.0 if n % 2 else 70.0, n) for n in range(20)])
    with serving(settings(data)) as live:
        live.publish([reading(n, f"s{n % 3}", 20.0 if n % 2 else 70.0, n) for n in range(20, 30)])
    with closing(sqlite3.connect(data / "journal.db")) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    return data


def tampered(place: Path, chance: Random) -> None:
    """Change one to three values, or bytes, of a journal."""
    if chance.random() < 0.3:
        content = bytearray(place.read_bytes())
        for _ in range(chance.choice((1, 5, 200))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        cut = chance.randrange(len(content)) if chance.random() < 0.3 else len(content)
        place.write_bytes(content[:cut])
        return
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("pragma ignore_check_constraints = on")
        for _ in range(chance.randint(1, 3)):
            table = chance.choice(TABLES)
            columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
            if chance.random() < 0.1:
                connection.execute(f"delete from {table}")
                continue
            try:
                connection.execute(
                    f"update {table} set {chance.choice(columns)} = ? where rowid % ? = 0"
                    if table in ("journal", "audit")
                    else f"update {table} set {chance.choice(columns)} = ? where ? > 0",
                    (chance.choice(VALUES), chance.choice((1, 2, 3))),
                )
            except sqlite3.Error:
                continue
        connection.commit()


async def start_and_stop(data: Path) -> None:
    channels = Channels(settings(data))
    async with asyncio.timeout(60):
        await channels.open()
        try:
            station = channels.main.station
            station.journal.outputs()
            station.journal.page(0, 2**62)
            station.registry.audited()
            station.registry.webhooks()
        finally:
            await channels.close()


def attack(original: Path, folder: Path, seed: int) -> str:
    """What came of one damaged journal: `started`, or our refusal."""
    data = folder / f"attacked{seed}"
    shutil.copytree(original, data)
    try:
        tampered(data / "journal.db", Random(seed))
        asyncio.run(start_and_stop(data))
    except EnsueError as error:
        return type(error).__name__
    finally:
        shutil.rmtree(data)
    return "started"


def test_a_damaged_journal_is_refused_in_our_words_or_read(tmp_path: Path) -> None:
    original = made(tmp_path)
    seen = Counter(attack(original, tmp_path, seed) for seed in range(30))
    assert seen["started"] < 30


def test_a_journal_is_no_history_and_no_file_of_others(tmp_path: Path) -> None:
    ServerJournal(tmp_path / "journal.db").close()
    ServerJournal(tmp_path / "journal.db").close()
    History.open(f"sqlite:{tmp_path}/history.db").close()
    with closing(sqlite3.connect(tmp_path / "places.db")) as connection:
        connection.execute("create table places (name)")
    for open_it in (
        lambda: ServerJournal(tmp_path / "history.db"),
        lambda: ServerJournal(tmp_path / "places.db"),
        lambda: History.open(f"sqlite:{tmp_path}/journal.db"),
    ):
        with pytest.raises(UsageError, match="is a database of something else"):
            open_it()
    # Tables of a history have names of their own, so that others may stand beside them.
    History.open(f"sqlite:{tmp_path}/places.db").close()


def test_a_mark_that_is_no_number_is_damage(tmp_path: Path) -> None:
    ServerJournal(tmp_path / "journal.db").close()
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.execute("update marks set value = 'x'")
        connection.commit()
    with pytest.raises(HistoryError, match="the mark `format` is no number"):
        ServerJournal(tmp_path / "journal.db")


def main() -> int:
    start, count = int(sys.argv[1]), int(sys.argv[2])
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        original = made(folder)
        for seed in range(start, start + count):
            try:
                seen[attack(original, folder, seed)] += 1
            except Exception as error:
                seen[f"FAULT {type(error).__name__}"] += 1
                print(f"seed {seed}:", flush=True)
                traceback.print_exc(limit=-4)
    print(dict(seen))
    return any(each.startswith("FAULT") for each in seen)


if __name__ == "__main__":
    sys.exit(main())
