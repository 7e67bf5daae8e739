"""What leaves the narrow path of reading, beside the plain run: seconds of the whole command.

    python benchmarks/reading.py [--rounds N] [--only NAME,...] [--windows FILE]

A rule `a ; b ; c` by host within 10 s runs over 200,000 flat events, and over the same events asked
for otherwise: with a lateness, through a pipe, as CloudEvents with a mapping, on `step`, with hosts
of several kinds, in no order. `--windows` is a file of JSON lines of Windows events
(`EventTime`, `EventID`, `Hostname`), over which logons followed by a service or a run key are
looked for. The runs take turns, and of each the best round counts. `net` is the time beyond that of
a run over three events; `times` is net beside the plain run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

EVENTS = 200_000
CHAIN = """
eventtype A { attribute long host; attribute double value; };
eventtype B { attribute long host; attribute double value; };
eventtype C { attribute long host; attribute double value; };
eventtype Chain { attribute long host; };
Chain correlation Abc (A a, B b, C c) a ; b ; c within 10 s by host
{ case true: push new Chain { host = c.host }; }
"""
WINDOWS = """
eventtype Win {
    attribute long EventID; attribute string Hostname; attribute string TargetObject;
    attribute string TargetUserName;
};
eventtype Follow { attribute string host; attribute string user; attribute string object; };
Follow correlation Logon (
    Win l where EventID = 4624,
    Win s where EventID = 7045,
    Win k where EventID = 13 AND TargetObject LIKE '%CurrentVersion\\\\Run%'
)
    l ; (s | k) within 10 s by Hostname
{
    case true:
        push new Follow { host = l.Hostname, user = l.TargetUserName, object = k.TargetObject };
}
"""


@dataclass(frozen=True)
class Way:
    """A run of the command: its rules, its events, its options, and whether they come by a pipe."""

    rules: str
    events: str
    options: tuple[str, ...] = ()
    by_pipe: bool = False


FLAT = ("--columns", "host=host")
WAYS = {
    "three events": Way("chain.cor", "three.jsonl", FLAT),
    "plain": Way("chain.cor", "flat.jsonl", FLAT),
    "cloudevents": Way("chain.cor", "cloudevents.jsonl"),
    "lateness": Way("chain.cor", "flat.jsonl", (*FLAT, "--lateness", "5 s")),
    "pipe": Way("chain.cor", "flat.jsonl", FLAT, by_pipe=True),
    "cloudevents mapped": Way("chain.cor", "cloudevents.jsonl", ("--columns", "id=id")),
    "step": Way("chain.cor", "flat.jsonl", (*FLAT, "--engine", "step")),
    "mixed hosts": Way("chain.cor", "mixed.jsonl", FLAT),
    "no order": Way("chain.cor", "shuffled.jsonl", FLAT),
    "csv": Way("chain.cor", "flat.csv"),
    "explain": Way("chain.cor", "flat.jsonl", (*FLAT, "--explain")),
    "windows": Way(
        "windows.cor",
        "windows.jsonl",
        ("--columns", "time=EventTime", "--type", "Win", "--timezone", "America/New_York"),
    ),
}


def write_data(folder: Path, windows: Path | None) -> None:
    draw = Random(1)
    at = datetime(2024, 5, 6, tzinfo=UTC)
    flat, clouds, mixed, rows = [], [], [], ["id,time,type,host,value"]
    for number in range(EVENTS):
        at += timedelta(milliseconds=draw.randrange(1, 20))
        shown = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        type_, host, value = draw.choice("ABCDEF"), draw.randrange(1000), draw.randrange(9999) / 100
        context = {"id": f"e{number}", "time": shown, "type": type_}
        data = {"host": host, "value": value}
        flat.append(json.dumps({**context, **data}))
        clouds.append(json.dumps({"source": "bench", **context, "data": data}))
        odd = str(host) if number % 4 == 0 else host
        mixed.append(json.dumps({**context, **data, "host": odd}))
        rows.append(f"e{number},{shown},{type_},{host},{value}")
    files = {
        "three.jsonl": flat[:3],
        "flat.jsonl": flat,
        "cloudevents.jsonl": clouds,
        "mixed.jsonl": mixed,
        "shuffled.jsonl": draw.sample(flat, len(flat)),
        "flat.csv": rows,
    }
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "chain.cor").write_text(CHAIN)
    (folder / "windows.cor").write_text(WINDOWS)
    if windows is not None:
        (folder / "windows.jsonl").symlink_to(windows.resolve())


def seconds(folder: Path, way: Way) -> tuple[float, float]:
    """The seconds of a run: of the clock on the wall, and of processors."""
    events = "-" if way.by_pipe else str(folder / way.events)
    command = [sys.executable, "-m", "ensue", "run", str(folder / way.rules), "-e", events]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    feeder = None
    if way.by_pipe:
        feeder = subprocess.Popen(["cat", str(folder / way.events)], stdout=subprocess.PIPE)
    done = subprocess.run(
        [*command, *way.options],
        stdin=None if feeder is None else feeder.stdout,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    wall = time.monotonic() - begin
    if feeder is not None:
        feeder.wait()
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--windows", type=Path)
    given = parser.parse_args(arguments)
    names = [each for each in given.only.split(",") if each] or list(WAYS)
    names = [each for each in names if each != "windows" or given.windows is not None]
    names = list(dict.fromkeys(["three events", "plain", *names]))
    best: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, given.windows)
        for _ in range(given.rounds):
            for each in names:
                wall, used = seconds(folder, WAYS[each])
                known = best.get(each, (wall, used))
                best[each] = min(wall, known[0]), min(used, known[1])
    start, plain = best["three events"], best["plain"]
    print(f"{'':20}{'wall':>8}{'net':>8}{'times':>8}{'cpu':>9}{'net':>8}{'times':>8}")
    for each in names:
        wall, used = best[each]
        nets = wall - start[0], used - start[1]
        ratios = [net / max(1e-9, p - s) for net, p, s in zip(nets, plain, start, strict=True)]
        print(
            f"{each:20}{wall:8.2f}{nets[0]:8.2f}{ratios[0]:8.1f}"
            f"{used:9.2f}{nets[1]:8.2f}{ratios[1]:8.1f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
