"""Histories whose files were damaged: our own error, in time, or an answer.

    python -m tests.history.stores.test_damaged_files sqlite|parquet START COUNT

tries many more than the tests do.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ensue.errors import EnsueError, HistoryError, UsageError
from ensue.history import History
from ensue.subscriptions import Filter

PLAIN = Filter.parse("text LIKE '%x%' AND inner.a IS NOT NULL")
TEMPORAL = Filter.parse("v = 3 AND start AFTER(10 s) (v = 2)")


def event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "source": "s",
        "type": "T",
        "time": f"2024-05-06T07:{number // 60 % 60:02}:{number % 60:02}Z",
        "data": {"v": number % 7, "text": "x" * (number % 50), "inner": {"a": [1, number]}},
        **more,
    }


def made(folder: Path, kind: str) -> Path:
    place = folder / f"history.{kind}"
    history = History.open(f"{kind}:{place}")
    history.add_all([event(number) for number in range(200)])
    history.add(event(700, phase="start"))
    history.close()
    if kind == "sqlite":
        with sqlite3.connect(place) as connection:
            connection.execute("pragma wal_checkpoint(truncate)")
        connection.close()
    return place


def damaged(content: bytes, draw: Random) -> bytes:
    bytes_ = bytearray(content)
    match draw.choice(["flip", "flips", "cut", "zero", "page"]):
        case "flip":
            bytes_[draw.randrange(len(bytes_))] ^= 1 << draw.randrange(8)
        case "flips":
            for _ in range(30):
                bytes_[draw.randrange(len(bytes_))] ^= 1 << draw.randrange(8)
        case "cut":
            del bytes_[draw.randrange(len(bytes_)) :]
        case "zero":
            at = draw.randrange(len(bytes_))
            bytes_[at : at + 500] = bytes(500)
        case _:
            to, of = (draw.randrange(1 + len(bytes_) // 4096) * 4096 for _ in range(2))
            bytes_[to : to + 4096] = bytes_[of : of + 4096]
    return bytes(bytes_)


def copied(base: Path, seed: int) -> Path:
    """A copy of a history in which one file is damaged."""
    draw = Random(seed)
    place = base.with_name(f"damaged.{base.suffix}")
    if base.is_file():
        for each in base.parent.glob(f"{place.name}*"):
            each.unlink()
        place.write_bytes(damaged(base.read_bytes(), draw))
        return place
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place)
    file = draw.choice(sorted(each for each in place.iterdir() if each.stat().st_size))
    file.write_bytes(damaged(file.read_bytes(), draw))
    return place


def outcome(kind: str, place: Path) -> str:
    """What becomes of a history: a word, or the traceback of an exception that is not ours."""
    try:
        history = History.open(f"{kind}:{place}")
        try:
            list(history.find(PLAIN, limit=20))
            history.matches(TEMPORAL, event(900))
            history.add_all([event(number) for number in range(1000, 1010)])
            list(history.find(TEMPORAL, limit=5))
        finally:
            history.close()
    except EnsueError:
        return "refused"
    except Exception:
        return traceback.format_exc()
    return "used"


@pytest.mark.parametrize("kind", ["sqlite", "parquet"])
def test_a_damaged_history_is_refused_or_used(tmp_path: Path, kind: str) -> None:
    base = made(tmp_path, kind)
    for seed in range(12):
        told = outcome(kind, copied(base, seed))
        assert told in ("refused", "used"), (seed, told)


def test_an_event_that_is_damaged_where_it_is_stored_is_told(tmp_path: Path) -> None:
    place = made(tmp_path, "sqlite")
    content = place.read_bytes()
    place.write_bytes(content.replace(b'"inner":{"a":[1,', b'"inner":{"a":(1,'))
    with (
        History.open(f"sqlite:{place}") as history,
        pytest.raises(HistoryError, match="an event of the history is damaged where it is"),
    ):
        list(history.find(PLAIN))


def test_a_state_that_is_damaged_is_told(tmp_path: Path) -> None:
    place = made(tmp_path, "sqlite")
    with sqlite3.connect(place) as connection:
        connection.execute("update ensue_state set format = x'00'")
    connection.close()
    with pytest.raises(UsageError, match="cannot be opened: the history is damaged: its `format`"):
        History.open(f"sqlite:{place}")


@pytest.mark.parametrize("name", ["part-000000000001.parquet", "_index.db"])
def test_a_damaged_file_of_a_folder_is_told(tmp_path: Path, name: str) -> None:
    place = made(tmp_path, "parquet")
    (place / name).write_bytes(b"this is none of it" * 300)
    with pytest.raises(UsageError, match=r"cannot be opened: .*(damaged|not a database)"):
        History.open(f"parquet:{place}")


def campaign(kind: str, start: int, count: int) -> None:
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        base = made(Path(folder), kind)
        for seed in range(start, start + count):
            told = outcome(kind, copied(base, seed))
            if told not in ("refused", "used") and told not in found:
                print(seed, told, flush=True)
            found[told] += 1
    for told, times in found.most_common():
        print(times, told)


if __name__ == "__main__":
    campaign(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
