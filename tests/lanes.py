"""Runs the whole suite in lanes side by side, since two of them wait most of the time.

In come options for pytest, which every lane gets; out go the reports, the first as it is written
and the others in one piece after it, and one exit code: 0 if everything has passed. One lane has
the tests that start Spark, one the tests that start servers or wait for clocks, the last one has
whatever is left, so that no test is left out. The lanes are processes with nothing in common:
neither session, broker, port nor folder. A single test, or a folder of tests, is run by `pytest`
itself.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ROOT = Path(__file__).parents[1]

WITH_SPARK = ("tests/docs", "tests/hunts/spark", "tests/spark")
"""Folders whose tests start sessions of Spark. They share one where they can, and so a lane."""

WITH_SERVERS = (
    "tests/brokers",
    "tests/channel",
    "tests/federation",
    "tests/history",
    "tests/hunts/servers",
    "tests/server",
)
"""Folders whose tests wait for servers, connections and the wall clock more than they compute."""


def main(options: Sequence[str]) -> int:
    apart = [f"--ignore={folder}" for folder in (*WITH_SPARK, *WITH_SERVERS)]
    asked = {"spark": WITH_SPARK, "servers": WITH_SERVERS, "others": ("tests", *apart)}
    with ExitStack() as files:
        held_back = {name: files.enter_context(TemporaryFile()) for name in ("servers", "others")}
        lanes = {
            name: _start(name, [*asked[name], *options], held_back.get(name)) for name in asked
        }
        try:
            codes = {name: lane.wait() for name, lane in lanes.items()}
        except KeyboardInterrupt:
            # A terminal has told the lanes as well; they put away what they have started.
            codes = {name: lane.wait() for name, lane in lanes.items()}
        for name, report in held_back.items():
            report.seek(0)
            print(f"\nthe lane `{name}`:\n\n{report.read().decode(errors='replace')}")
    for name, code in codes.items():
        print(f"the lane `{name}` has {'passed' if code == 0 else f'failed, with code {code}'}")
    return max(map(abs, codes.values()))


def _start(name: str, options: Sequence[str], report: IO[bytes] | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{name}", *options]
    errors = None if report is None else subprocess.STDOUT
    return subprocess.Popen(command, cwd=ROOT, stdout=report, stderr=errors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
