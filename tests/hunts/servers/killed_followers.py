"""Followed runs that are killed: no output is missing, and none stands twice.

A round writes events to files in small pieces, now and then into the middle of a line, and renames
the files as a rotation does. Meanwhile `ensue run --follow --out` reads them, and is killed again
and again at any moment, or stopped in order. In the end the outputs are those of the rules over all
events but those that the run has put aside as late, each once, whatever the format is.
"""

from __future__ import annotations

import csv
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import ensue
from ensue.cli.followed.position import PositionFile, position_path
from ensue.events.records.places import Merged, Part

SHORT = (3,)
FORMATS = (".jsonl", ".csv", ".parquet")
_RULES = """
eventtype Step { attribute string host; attribute long n; };
eventtype Pair { attribute string host; attribute long first; attribute long second; };
eventtype Quiet { attribute string host; };
Pair correlation Twice (Step a, Step b) a ; b by host
{
    case true: push new Pair { host = b.host, first = a.n, second = b.n };
}
Quiet correlation Silence (Step s) s ; timeout(20 s) by host unless s
{
    case true: push new Quiet { host = s.host };
}
"""
_SECONDS_TO_END = 60.0


def hunt(seed: int, kills: int = 3) -> Mapping[str, int]:
    with tempfile.TemporaryDirectory(prefix="followed-") as folder:
        return _Round(seed, Path(folder)).play(kills)


class _Round:
    def __init__(self, seed: int, folder: Path) -> None:
        self._random = random.Random(seed)
        self._folder = folder
        self._logs = [folder / f"log{n}.jsonl" for n in range(self._random.randint(1, 3))]
        self._out = folder / f"found{self._random.choice(FORMATS)}"
        self._late = folder / "late.jsonl"
        self._lateness = self._random.choice(["5 s", "60 s"])
        self._written: list[dict[str, Any]] = []
        self._held: dict[Path, bytes] = {}
        self._rules = folder / "rules.cor"
        self._rules.write_text(_RULES)
        for each in self._logs:
            each.touch()

    def play(self, kills: int) -> Mapping[str, int]:
        stops = 0
        for _ in range(kills):
            follower = self._start()
            self._write_for(self._random.uniform(0.5, 4))
            if self._random.random() < 0.2:
                stops += 1
                follower.send_signal(signal.SIGTERM)
            else:
                follower.kill()
            self._wait(follower)
            self._write(self._random.randint(0, 30))
        follower = self._start()
        self._write(10)
        for log, rest in self._held.items():
            with log.open("ab") as file:
                file.write(rest)
        self._held.clear()
        self._settle(follower)
        follower.send_signal(signal.SIGTERM)
        self._wait(follower)
        found, late = self._found(), self._late_ids()
        self._check(found, late)
        return {
            "kills": kills - stops,
            "stops": stops,
            "events": len(self._written),
            "outputs": len(found),
            "late events": len(late),
        }

    # --- what comes -------------------------------------------------------------------------------

    def _write_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._write(self._random.randint(1, 20))
            if self._random.random() < 0.1:
                self._rotate()
            time.sleep(self._random.uniform(0, 0.2))

    def _write(self, count: int) -> None:
        for _ in range(count):
            log = self._random.choice(self._logs)
            number = len(self._written)
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + number))
            host = f"h{self._random.randint(0, 4)}"
            event = {
                "id": str(number),
                "source": "s",
                "type": "Step",
                "time": at,
                "data": {"host": host, "n": number},
            }
            self._written.append(event)
            text = self._held.pop(log, b"") + json.dumps(event).encode() + b"\n"
            if self._random.random() < 0.1:
                cut = self._random.randrange(len(text))
                self._held[log], text = text[cut:], text[:cut]
            with log.open("ab") as file:
                file.write(text)

    def _rotate(self) -> None:
        log = self._random.choice(self._logs)
        # A file that a run has never seen is not found once it has another name.
        if log not in self._held and log in self._opened():
            log.rename(log.with_name(f"{log.name}.{time.monotonic_ns()}"))
            log.touch()

    def _opened(self) -> list[Path]:
        """The logs of which the run has the files that are there now."""
        found = PositionFile(position_path(self._out)).read()
        ids = set()
        if found is not None:
            state, steps = found
            ids = {each.id for each in state.inputs}
            ids |= {each.what.id for each in steps if isinstance(each.what, Part)}
        return [log for log in self._logs if (log.stat().st_dev, log.stat().st_ino) in ids]

    # --- the run ----------------------------------------------------------------------------------

    def _start(self) -> subprocess.Popen[bytes]:
        logs = [part for log in self._logs for part in ("-e", str(log))]
        options = ["--follow", "--lateness", self._lateness, "--late", str(self._late)]
        command = [sys.executable, "-m", "ensue", "run", str(self._rules), *logs, *options]
        return subprocess.Popen([*command, "--out", str(self._out)], stderr=subprocess.PIPE)

    def _wait(self, follower: subprocess.Popen[bytes]) -> None:
        _, err = follower.communicate(timeout=_SECONDS_TO_END)
        # A run that is only starting is ended by SIGTERM as by SIGKILL.
        if follower.returncode not in (0, -signal.SIGKILL, -signal.SIGTERM):
            raise AssertionError(f"the run ended with {follower.returncode}: {err.decode()}")
        if b"Traceback" in err or b"are gone" in err:
            raise AssertionError(err.decode())

    def _settle(self, follower: subprocess.Popen[bytes]) -> None:
        """Wait until all lines have been read: the position tells how far the run is."""
        position = PositionFile(position_path(self._out))
        sizes = {str(log): log.stat().st_size for log in self._logs}
        end = time.monotonic() + _SECONDS_TO_END
        while time.monotonic() < end:
            assert follower.poll() is None, "the run has ended"
            found = position.read()
            if found is not None:
                state, steps = found
                read = {each.path: each.offset for each in state.inputs}
                for step in steps:
                    match step.what:
                        case Part(input=number, end=size):
                            read[state.inputs[number].path] = size
                        case Merged(ends=ends):
                            read |= {state.inputs[n].path: size for n, size in ends.items()}
                if read == sizes:
                    return
            time.sleep(0.1)
        raise AssertionError(f"the run does not come to the end of its files: {sizes}")

    # --- what came of it --------------------------------------------------------------------------

    def _found(self) -> list[str]:
        if self._out.is_dir():
            parts = sorted(self._out.glob("part-*.parquet"))
            return [each for part in parts for each in pq.read_table(part)["id"].to_pylist()]
        if self._out.suffix == ".csv":
            with self._out.open(newline="") as file:
                return [row["id"] for row in csv.DictReader(file)]
        return [json.loads(line)["id"] for line in self._out.read_text().splitlines()]

    def _late_ids(self) -> list[str]:
        lines = self._late.read_text().splitlines() if self._late.exists() else []
        return [json.loads(line)["id"] for line in lines]

    def _check(self, found: list[str], late: list[str]) -> None:
        twice = [each for each, count in Counter(late).items() if count > 1]
        assert not twice, f"late events stand twice: {twice[:5]}"
        on_time = [each for each in self._written if each["id"] not in set(late)]
        expected = Counter(each.id for each in ensue.parse(_RULES).run(on_time))
        got = Counter(found)
        assert got == expected, (
            f"{self._out.name}, lateness {self._lateness}, {len(self._logs)} logs:"
            f" missing {[*(expected - got)][:5]}, too many {[*(got - expected)][:5]}"
        )
