"""Threads and processes that write one history and ask it at the same time."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ensue.history import History
from tests.history.test_publications import publication

WRITER = """
import sys
from ensue.history import History
from tests.history.test_publications import publication

first = int(sys.argv[2])
with History.open(sys.argv[1]) as history:
    for number in range(first, first + 40):
        history.add(publication(number, number % 60, data={"n": number}))
"""


def test_threads_share_a_history(url: str) -> None:
    with History.open(url) as history:

        def work(first: int) -> int:
            found = 0
            for number in range(first, first + 15):
                x = publication(10_000 + number, 59, data={"n": number})
                history.add(publication(number, number % 50, data={"n": number}))
                found += history.matches(f"n FILTER(=) (n = {number})", x)
                found += history.matches("start AFTER(1 min) (n >= 0)", x)
            return found

        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(work, (0, 100, 200, 300))) == [30] * 4
        assert len(history) == 60


@pytest.mark.parametrize("store", ["sqlite", "parquet"])
def test_processes_share_a_history(store: str, tmp_path: Path) -> None:
    url = f"{store}:{tmp_path / 'shared'}"
    command = [sys.executable, "-c", WRITER, url]
    root = Path(__file__).parents[2]
    History.open(url).close()
    writers = [subprocess.Popen([*command, str(first)], cwd=root) for first in (0, 100)]

    assert [writer.wait() for writer in writers] == [0, 0]
    with History.open(url) as history:
        expected = {f"e{first + number}" for first in (0, 100) for number in range(40)}
        assert {each.id for each in history.find("n >= 0")} == expected
