"""Runs the whole suite in two lanes at once, for one of them waits for Java most of the time.

In come options for pytest, which both lanes get; out go the reports of both, the first as it is
written and the second in one piece after it, and one exit code: 0 if everything has passed. The
lanes are processes with nothing in common: neither session, broker, port nor folder. That no test
is left out needs no list: the second lane has all that the first has not. A single test, or a
folder of them, is run by `pytest` itself.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

ROOT = Path(__file__).parents[1]
WITH_JAVA = ("tests/docs", "tests/spark")
"""Folders whose tests start sessions of Spark. They share one where they can, and so a lane."""


def main(options: Sequence[str]) -> int:
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as held_back:
        with_java = _start("with-java", [*WITH_JAVA, *options])
        others = [f"--ignore={folder}" for folder in WITH_JAVA]
        without_java = _start("without-java", ["tests", *others, *options], held_back.fileno())
        lanes = {"with Java": with_java, "without Java": without_java}
        try:
            codes = {name: lane.wait() for name, lane in lanes.items()}
        except KeyboardInterrupt:
            # A terminal has told the lanes as well; they put away what they have started.
            codes = {name: lane.wait() for name, lane in lanes.items()}
        held_back.seek(0)
        print("\nthe lane without Java:\n", held_back.read(), sep="\n")
    for name, code in codes.items():
        print(f"the lane {name} has {'passed' if code == 0 else f'failed, with code {code}'}")
    return max(map(abs, codes.values()))


def _start(name: str, options: Sequence[str], output: int | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{name}", *options]
    errors = None if output is None else subprocess.STDOUT
    return subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=errors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
