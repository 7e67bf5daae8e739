"""`ensue run --engine spark`: what differs from a run in this process.

PySpark is loaded only here, when it is asked for, and a machine that lacks it is told what to
install. A single file is read here and run on Spark. Folders, patterns and places that only Spark
can reach are read by its executors, and so is all that goes to a folder of Parquet. What streams
(`--lateness`) and what explains itself as it goes (`--explain`) is refused.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import typer

from ensue.cli.asides import RefusedRecords
from ensue.cli.terminal import EXIT_FINDINGS, counted, say
from ensue.engine.counts import Counts
from ensue.engine.run import Run
from ensue.errors import UsageError
from ensue.events.cloudevents import encode
from ensue.events.reading import FORMATS, STDIN
from ensue.library import Library

if TYPE_CHECKING:
    from ensue.spark.batch.files import FileRun

SPARK = "spark"
_PATTERN = re.compile(r"[*?\[{]")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]+:/")


def missing_for_spark() -> str | None:
    """What this machine lacks for Spark, and what to do about it; None if nothing is missing."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed; `pip install 'ensue[spark]'` brings it, and it needs Java"
    # A session elsewhere brings the Java that it runs on.
    if "SPARK_REMOTE" in os.environ:
        return None
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java").exists() if home else shutil.which("java") is not None
    if java:
        return None
    where = f"there is none in `JAVA_HOME` ({home})" if home else "there is no `java` on the path"
    return f"Spark runs on Java, and {where}; install Java 17 or newer"


def start_on_spark(
    library: Library, correlation: str | None, lateness: int | None, explain: bool
) -> Run:
    """A run that gathers its events and has Spark run them when it is finished."""
    _refuse([lateness is not None and "--lateness", explain and "--explain"])
    from ensue.spark.batch.events import SparkRun

    # It answers as a `Run` does in all that a bounded input asks of it.
    return cast(Run, SparkRun(library, correlation))


def _refuse(given: Sequence[str | bool]) -> None:
    """Raises `UsageError` for options that have no meaning here, or a machine without Spark."""
    if "--lateness" in given:
        raise UsageError(
            "`--engine spark` reads a bounded input in the order of its times: leave out"
            " `--lateness`, or choose another engine"
        )
    if "--explain" in given:
        raise UsageError("`--explain` needs an engine that runs here: choose `step`")
    if (lacking := missing_for_spark()) is not None:
        raise UsageError(f"`--engine spark` cannot be used here: {lacking}")


# --- files that executors read ------------------------------------------------------------------


@dataclass(frozen=True)
class FilesOnSpark:
    """What was asked for."""

    library: Library
    events: str
    format: str | None
    out: Path | None
    dead_letter: Path | None
    correlation: str | None
    until: int | None
    strict: bool

    @property
    def writes_folder(self) -> bool:
        return self.out is not None and _is_folder(self.out)


def is_for_executors(events: str, out: Path | None) -> bool:
    """Whether the events are many files, or the outputs are to be."""
    if events == STDIN:
        return False
    path = Path(events)
    many = path.is_dir() or (_PATTERN.search(events) is not None and not path.exists())
    return many or _SCHEME.match(events) is not None or (out is not None and _is_folder(out))


def _is_folder(out: Path) -> bool:
    return out.suffix.lower() == ".parquet" or out.is_dir()


def run_on_executors(asked: FilesOnSpark, given: Sequence[str | bool]) -> None:
    """Run a library over files that Spark reads, and say how it goes.

    `given` has the options that were given and may have no meaning here.
    """
    _refuse(given)
    from ensue.spark.failures import as_job_error

    with as_job_error(f"the run over `{asked.events}`"):
        _run_on_executors(asked)


def _run_on_executors(asked: FilesOnSpark) -> None:
    from ensue.spark.batch.files import FileRun, taken
    from ensue.spark.session import open_session

    format_ = asked.format or _format_of(asked.events)
    if asked.out is not None and asked.writes_folder and asked.out.exists():
        raise taken(str(asked.out))
    run = FileRun.of(
        open_session(), asked.library, asked.events, format_, asked.until, asked.correlation
    )
    say(f"reading {counted(run.files, 'file')} of `{asked.events}` on Spark", "dim")
    events, refused = run.counted()
    with ExitStack() as files:
        aside = RefusedRecords(asked.events, asked.dead_letter, format_ == "jsonl", files)
        if refused:
            for place, record in run.rejected():
                aside.take(record, place or asked.events)
                if asked.strict:
                    say("stopped at the first record that was refused, as `--strict` asks", "red")
                    raise typer.Exit(EXIT_FINDINGS)
    say(f"{counted(events, 'event')} to be read; looking for what follows", "dim")
    counts = Counts()
    write = _write_folder if asked.writes_folder else _write_lines
    written = write(run, asked, counts)
    parts = [f"{counted(events, 'event')} read"]
    parts += [aside.summary()] if aside.count else []
    parts += [
        f"{counts.without_key[name]:,} without a key for `{name}`"
        for name in asked.library.correlations.names
        if counts.without_key[name]
    ]
    place = f" in `{asked.out}`" if asked.out else ""
    say(f"{', '.join(parts)}; {counted(written, 'output')}{place}", "dim")


def _write_folder(run: FileRun, asked: FilesOnSpark, counts: Counts) -> int:
    # A path of this machine has lost one of the two strokes after a scheme.
    return run.write(_SCHEME.sub(lambda found: f"{found[0]}/", str(asked.out)), counts)


def _write_lines(run: FileRun, asked: FilesOnSpark, counts: Counts) -> int:
    written = 0
    with ExitStack() as files:
        sink: BinaryIO = (
            files.enter_context(asked.out.open("wb")) if asked.out else sys.stdout.buffer
        )
        for output in run.outputs(counts):
            sink.write(encode(output) + b"\n")
            written += 1
        sink.flush()
    return written


def _format_of(events: str) -> str:
    """What the names of the files say; for places that only Spark can list, what the path says."""
    path = Path(events)
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    shown = [each for each in files if each.name[:1] not in ("_", ".")]
    if path.is_dir() and not shown:
        from ensue.spark.batch.files import without_files

        raise without_files(events)
    found = {FORMATS[each.suffix.lower()] for each in shown if each.suffix.lower() in FORMATS}
    if len(found) > 1:
        names = ", ".join(f"`{name}`" for name in sorted(found))
        raise UsageError(
            f"`{events}` has files of several formats ({names}): choose one with `--format`, and"
            f" its files with a pattern, as `{events.rstrip('/')}/*.parquet`"
        )
    return next(iter(found), "parquet")
