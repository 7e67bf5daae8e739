"""Esper beside our engines: the same events, the same patterns, in one run, a thread each.

Esper is no dependency of Ensue: it is fetched by Maven when this runs, once, into the user's cache
folder, and the Java program that drives it (`benchmarks/esper` of the repository) is compiled with
the machine's own `javac`. Both sides have their events in memory before the clock starts. Esper's
seconds are those of its one thread, without its garbage collector and compiler, which have threads
of their own; ours are those of the whole process.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from ensue.errors import UsageError
from ensue_bench.effort import Effort
from ensue_bench.peers import cache_of, output_of, sources_of
from ensue_bench.pushing import matches_of, through_batch, through_step
from ensue_bench.report import Figure, rate
from ensue_bench.timing import rates, side_by_side
from ensue_bench.workload import UserSteps, both, leak, window_of

TIMES_AHEAD = 10
TOOLS = ("java", "javac", "mvn")
RECORD = np.dtype([("type", "<i4"), ("user", "<i4"), ("time", "<i8"), ("size", "<f8")])
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


@dataclass(frozen=True)
class Contest:
    """One rule of ours and the EPL files that stand beside it; the first means the same."""

    name: str
    text: str
    statements: tuple[str, ...]
    window_seconds: float | None


@dataclass(frozen=True)
class EsperPeer:
    """Esper, ready to run."""

    sources: Path
    class_path: str

    def run(self, contest: Contest, statement: str, events: Path, repeats: int) -> EsperRounds:
        epl = (self.sources / f"{statement}.epl").read_text("utf-8")
        prepared = events.with_name(f"{statement}.epl")
        prepared.write_text(epl.replace("WINDOW", str(contest.window_seconds)), "utf-8")
        clock = "no-clock" if contest.window_seconds is None else "clock"
        command = ["java", "-cp", self.class_path, "EsperPatterns", str(events), str(prepared)]
        lines = output_of([*command, clock, str(repeats)]).splitlines()
        _, *counted = [line for line in lines if re.fullmatch(r"\d+ \d+ \d+", line)]
        columns = zip(*(map(int, line.split()) for line in counted), strict=True)
        processor, _, matches = (list(column) for column in columns)
        return EsperRounds([each / 1e9 for each in processor], matches[0])


@dataclass(frozen=True)
class EsperRounds:
    seconds: Sequence[float]
    matches: int


def measure(effort: Effort) -> Iterator[Figure]:
    pa.set_cpu_count(1)
    peer = prepare()
    keys = effort.size(10_000, 50)
    steps = UserSteps(effort.size(1_000_000, 5000), keys)
    window = window_of(keys)
    milliseconds = int(re.sub(r"\D", "", window))
    contests = (
        Contest("a ; b ; c, reset", leak(), ("leak", "leak-overlapping"), None),
        Contest("a + b within", both(window), ("both", "both-tumbling"), milliseconds / 1000),
    )
    with TemporaryDirectory() as folder:
        file = Path(folder) / "events.bin"
        write_records(steps, file)
        for contest in contests:
            yield from compare(effort, peer, contest, steps, file)


def compare(
    effort: Effort,
    peer: EsperPeer,
    contest: Contest,
    steps: UserSteps,
    file: Path,
    times_ahead: float = TIMES_AHEAD,
    stepped: int | None = None,
) -> Iterator[Figure]:
    """Both engines and Esper in turns; `step` reads only so many events, if that is said."""
    table = steps.table()
    few = steps.events()[:stepped]
    works = {
        "batch": through_batch(contest.text, table),
        "step": through_step(contest.text, few),
    }
    # Half of our rounds before Esper's and half after, so that a change of the machine's mood shows
    # in the spread rather than in the ratio.
    half = max(1, effort.times() // 2)
    before = side_by_side(works, half)
    theirs = {name: peer.run(contest, name, file, effort.times()) for name in contest.statements}
    after = side_by_side(works, effort.times() - half, warm=False)
    ours = {name: before[name] + after[name] for name in works}
    found = f"{matches_of(contest.text, table):,} matches"
    for name, taken in ours.items():
        count = len(steps) if name == "batch" else len(few)
        yield rate(f"{contest.name}: {name}", rates(count, taken), note=found)
    for name, rounds in theirs.items():
        values = rates(len(steps), rounds.seconds)
        yield rate(f"Esper, `{name}`", values, note=f"{rounds.matches:,} matches")
    same = theirs[contest.statements[0]].seconds
    for name, aim, count in (("batch", times_ahead, len(steps)), ("step", None, len(few))):
        whole = len(steps) / count
        pairs = zip(sorted(same), (whole * each for each in sorted(ours[name])), strict=False)
        yield Figure(
            f"{contest.name}: {name} ahead of Esper",
            "times",
            tuple(one / other for one, other in pairs),
            "higher",
            aim,
        )


def write_records(steps: UserSteps, file: Path) -> None:
    records = np.empty(len(steps), RECORD)
    records["type"], records["user"] = steps.types, steps.users
    records["time"], records["size"] = steps.times, steps.sizes
    records.tofile(file)


def prepare() -> EsperPeer:
    """Fetch and compile what is missing. Raises `UsageError` if this machine cannot."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        names = ", ".join(f"`{tool}`" for tool in missing)
        raise UsageError(
            f"`ensue bench esper` needs {', '.join(f'`{tool}`' for tool in TOOLS)} on the path, "
            f"and there is no {names}; install a Java development kit (17 or newer) and Maven"
        )
    sources = sources_of("esper")
    cache = cache_of("esper")
    jars, classes = cache / "jars", cache / "classes"
    if not list(jars.glob("esper-runtime-*.jar")):
        jars.mkdir(parents=True, exist_ok=True)
        output_of(
            ["mvn", "--batch-mode", "--quiet", "--strict-checksums", "--file",
             str(sources / "pom.xml"), PLUGIN, f"-DoutputDirectory={jars}",
             "-DincludeScope=runtime"]
        )  # fmt: skip
    output_of(["javac", "-cp", f"{jars}/*", "-d", str(classes), *map(str, sources.glob("*.java"))])
    return EsperPeer(sources, f"{classes}{os.pathsep}{jars}/*")
