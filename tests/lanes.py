"""Runs the whole suite in lanes side by side, since most of them wait more than they compute.

In come `--times`, and options for pytest, which every lane gets; out go how far the lanes are,
their reports, each in one piece when its lane ends, then what has failed, with `--times` the
slowest tests of all lanes, and one exit code: 0 if everything has passed. What fails while all
lanes run is run once more when nothing is beside it: two processors for seven lanes, brokers and
databases leave some waits too short. What passes then is named, and does not fail the run. A lane
is a process that has nothing in common with the others: neither session, broker, port nor folder.
One lane has whatever the others leave, so that no test is left out. A single test, or a folder of
tests, is run by `pytest` itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]

LANES = {
    "spark": ("tests/spark", "tests/hunts/spark", "tests/docs/spark"),
    "others": (),
    "engines": (
        "tests/agreement",
        "tests/engine",
        "tests/hunts/computing",
        "tests/machine",
        "tests/oracle",
    ),
    "processes": (
        "tests/spark/streaming/command",
        "tests/spark/streaming/test_elsewhere.py",
        "tests/spark/test_elsewhere.py",
        "tests/hunts/servers",
    ),
    "kafka": ("tests/spark/kafka",),
    "servers": ("tests/server", "tests/history"),
    "brokers": ("tests/brokers", "tests/channel", "tests/federation"),
}
"""The folders and files of each lane, one without any for the rest. Only one shares a session of
Spark; what starts programs, servers and sessions of its own, and waits for them, is beside it."""

SLOWEST = 50
TESTS_HAVE_FAILED = 1
"""The exit code of a pytest that has come to its end; with others it has not."""
MOST_AGAIN = 20
"""With more failures than that, something is broken, and no second run says otherwise."""
POLL_SECONDS = 0.2
PROGRESS_SECONDS = 30.0
PERCENT = re.compile(r"\[ *(\d+)%\]")


@dataclass(frozen=True)
class Outcome:
    """What has become of one test; the seconds are those of its own fixtures too."""

    name: str
    seconds: float
    failed: bool


@dataclass
class Lane:
    name: str
    process: subprocess.Popen[bytes]
    report: Path
    results: Path
    code: int | None = None
    seconds: float = 0.0
    outcomes: Sequence[Outcome] = ()

    @property
    def failed(self) -> list[str]:
        return [outcome.name for outcome in self.outcomes if outcome.failed]


def main(arguments: Sequence[str]) -> int:
    with_times = "--times" in arguments
    options = [argument for argument in arguments if argument != "--times"]
    with TemporaryDirectory() as folder:
        lanes = [_start(name, options, Path(folder)) for name in LANES]
        try:
            _wait(lanes)
        except KeyboardInterrupt:
            # A terminal has told the lanes as well; they put away what they have started.
            _wait(lanes)
        for lane in lanes:
            lane.outcomes = _outcomes(lane.results)
        outcomes = [outcome for lane in lanes for outcome in lane.outcomes]
        unsteady = _run_again(lanes, options, Path(folder))
    if with_times:
        print(f"\nthe {SLOWEST} slowest tests:\n")
        for outcome in sorted(outcomes, key=attrgetter("seconds"), reverse=True)[:SLOWEST]:
            print(f"{outcome.seconds:7.1f} s  {outcome.name}")
    print()
    for name in unsteady:
        print(f"passed when it was run again, alone: {name}")
    for lane in lanes:
        for name in lane.failed:
            print(f"failed: {name}")
    for lane in lanes:
        ending = "has passed" if lane.code == 0 else f"has failed, with code {lane.code}"
        print(f"the lane `{lane.name}` {ending}, in {lane.seconds:.0f} s")
    return max(abs(lane.code or 0) for lane in lanes)


def _run_again(lanes: Sequence[Lane], options: Sequence[str], folder: Path) -> list[str]:
    """Run what has failed by itself, lane after lane. Gives back what has passed then."""
    if sum(len(lane.failed) for lane in lanes) > MOST_AGAIN:
        return []
    unsteady = []
    for lane in lanes:
        if not lane.failed or lane.code != TESTS_HAVE_FAILED:
            continue
        before = lane.failed
        again = _start(lane.name, [*options, "--last-failed"], folder)
        _wait([again])
        lane.code, lane.outcomes = again.code, _outcomes(again.results)
        unsteady += [name for name in before if name not in lane.failed]
    return unsteady


def _start(name: str, options: Sequence[str], folder: Path) -> Lane:
    report, results = folder / f"{name}.txt", folder / f"{name}.xml"
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir=.pytest_cache/{name}"]
    command += [f"--junitxml={results}", *_selection(name), *options]
    with report.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    return Lane(name, process, report, results)


def _selection(name: str) -> list[str]:
    """The folders of a lane that there are, without those of the other lanes inside them."""
    folders = LANES[name] or ("tests",)
    elsewhere = {each for other, listed in LANES.items() if other != name for each in listed}
    inside = [
        each for each in sorted(elsewhere) if each.startswith(tuple(f"{f}/" for f in folders))
    ]
    there = [folder for folder in folders if (ROOT / folder).exists()]
    return [*there, *(f"--ignore={folder}" for folder in inside)]


def _wait(lanes: Sequence[Lane]) -> None:
    """Until all have ended; what each has reported is printed as soon as it has."""
    began = told = time.monotonic()
    while running := [lane for lane in lanes if lane.code is None]:
        for lane in running:
            lane.code = lane.process.poll()
            if lane.code is not None:
                lane.seconds = time.monotonic() - began
                report = lane.report.read_text(encoding="utf-8", errors="replace")
                print(f"\nthe lane `{lane.name}`:\n\n{report}", flush=True)
        if time.monotonic() - told >= PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"{told - began:4.0f} s:", ", ".join(map(_progress, lanes)), flush=True)
        time.sleep(POLL_SECONDS)


def _progress(lane: Lane) -> str:
    if lane.code is not None:
        return f"{lane.name} done"
    shares = PERCENT.findall(lane.report.read_text(encoding="utf-8", errors="replace"))
    return f"{lane.name} {shares[-1] if shares else 0} %"


def _outcomes(results: Path) -> list[Outcome]:
    """Of one lane, as pytest has written them; none where it could not."""
    if not results.exists():
        return []
    return [
        Outcome(
            f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}",
            float(case.get("time", 0)),
            failed=case.find("failure") is not None or case.find("error") is not None,
        )
        for case in ElementTree.parse(results).iter("testcase")
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
