"""Flink beside us: the same events from the same files, in its own environment.

Flink is no dependency of Ensue, and its libraries would not agree with ours: when this runs first,
it is installed from PyPI into a virtual environment in the user's cache folder, and Maven fetches
what it needs to read Parquet. The rule stands in `benchmarks/flink` of the repository, in SQL; a
process of its own runs it, in either of Flink's modes, with a parallelism of two. Times of repeats
do not include the start of that process; `whole_process` is its time from begin to end.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensue.errors import UsageError
from ensue_bench.peers import cache_of, output_of, sources_of

VERSION = "2.3.0"
TOOLS = ("java", "mvn")
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


@dataclass(frozen=True)
class Way:
    """One of Flink's modes, and for a stream how long its watermark waits for what is behind."""

    name: str
    mode: str
    behind_seconds: int = 0
    in_step: bool = False


WAYS = (
    Way("batch mode", "batch"),
    Way("streaming mode, files in step", "streaming", 5, in_step=True),
)


@dataclass(frozen=True)
class Rounds:
    """Seconds of each repeat, without the first one."""

    scan: Sequence[float]
    rule: Sequence[float]
    matches: int


@dataclass(frozen=True)
class Flink:
    """Ready to run."""

    python: Path
    program: Path
    jars: Sequence[Path]

    def run(self, events: str, repeats: int, way: Way) -> Rounds:
        lines = self._said(events, "parquet", way, "--repeats", str(repeats))
        rounds = [line for line in lines if not line["warming_up"]]
        matches = {line["matches"] for line in lines}
        if len(matches) != 1:
            raise RuntimeError(f"Flink's rounds found different numbers of matches: {matches}")
        return Rounds(
            [line["scan"] for line in rounds], [line["rule"] for line in rounds], matches.pop()
        )

    def whole_process(self, events: str, format_: str) -> tuple[float, int]:
        """The seconds of a process that runs the rule once in batch mode, and its matches."""
        begin = time.perf_counter()
        (line,) = self._said(events, format_, WAYS[0], "--rule-only")
        return time.perf_counter() - begin, line["matches"]

    def _said(self, events: str, format_: str, way: Way, *more: str) -> list[Any]:
        """The lines of JSON that a process writes."""
        command = [str(self.python), str(self.program), "--events", events, "--format", format_]
        command += ["--mode", way.mode, "--behind", str(way.behind_seconds), *more, "--"]
        text = output_of([*command, *map(str, self.jars)])
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def prepare() -> Flink:
    """Fetch what is missing. Raises `UsageError` if this machine cannot."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        names = ", ".join(f"`{tool}`" for tool in missing)
        raise UsageError(
            "`ensue bench spark` needs `java` and `mvn` on the path to run Flink beside Spark, and"
            f" there is no {names}; install Java 17 and Maven, or leave Flink out with `--quick`"
        )
    sources = sources_of("flink")
    cache = cache_of("flink")
    environment, jars = cache / VERSION, cache / f"jars-{VERSION}"
    python = environment / "bin" / "python"
    if not (environment / "installed").exists():
        output_of([sys.executable, "-m", "venv", "--clear", str(environment)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        output_of([*pip, f"apache-flink=={VERSION}"])
        (environment / "installed").touch()
    if not list(jars.glob("*.jar")):
        output_of(
            ["mvn", "--batch-mode", "--quiet", "--strict-checksums", "--file",
             str(sources / "pom.xml"), PLUGIN, f"-DoutputDirectory={jars}",
             "-DexcludeTransitive=true"]
        )  # fmt: skip
    return Flink(python, sources / "match_recognize.py", sorted(jars.glob("*.jar")))
