"""`ensue stream` as a process of its own, over files of readings; it may be killed.

In come pieces of a stream; out go a folder with rules, configuration and events, and processes over
it. A process leads a group of its own, so that Spark's Java goes down with it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tests.spark.class_archive import quick_start
from tests.spark.streaming.cutting import write_pieces
from tests.spark.streaming.sensors import LIBRARY

CONFIG = """
[source]
format = "parquet"
path = "{folder}/events"
options = {{ maxFilesPerTrigger = 1 }}

[stream]
checkpoint = "{folder}/checkpoint"
lateness = "2 s"
buckets = 2

[spark]
"spark.sql.shuffle.partitions" = 1

[sink]
format = "parquet"
path = "{folder}/sink"
partition_by = ["correlation", "ensue_date"]
"""
LONGEST_RUN = 1200
LATE_SINK = """
[late]
format = "parquet"
path = "{folder}/late"
"""


RULES_TABLE = """
[rules]
path = "{folder}/rules"
every = "1 s"
"""


def prepare(
    folder: Path,
    pieces: Sequence[pa.Table],
    late_sink: bool = False,
    library: str = LIBRARY,
    trigger: str = "available now",
    rules_table: bool = False,
    together: bool = False,
) -> None:
    """With `rules_table` the rules are in a table, which is still to be written.

    With `together` late events stand among the outputs.
    """
    write_pieces(folder / "events", pieces)
    (folder / "rules").mkdir()
    if not rules_table:
        (folder / "rules" / "rules.cor").write_text(library)
    text = CONFIG.replace("buckets = 2", f'buckets = 2\ntrigger = "{trigger}"')
    text += "together = true\n" if together else ""
    text += LATE_SINK if late_sink else ""
    text += RULES_TABLE if rules_table else ""
    (folder / "stream.toml").write_text(text.format(folder=folder))


# A server of Spark Connect takes one certain port, which another one of this machine may have.
# Where Spark's own tests are told to run, it takes any that is free.
ANY_PORT = {"SPARK_TESTING": "0"}


def run_to_the_end(folder: Path, *options: str) -> int:
    """Read all that is there, and end; the code with which the command did."""
    config = folder / "stream.toml"
    endless = re.compile('trigger = ".*"')
    config.write_text(endless.sub('trigger = "available now"', config.read_text()))
    process = start(folder, *options)
    try:
        return process.wait(LONGEST_RUN)
    finally:
        if process.poll() is None:
            kill(process)


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ensue", "stream"]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "OMP_NUM_THREADS": "1",
        "SPARK_SUBMIT_OPTS": quick_start(),
    }
    libraries = [str(folder / "rules")] if any(folder.glob("rules/*.cor")) else []
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [*command, *libraries, str(folder / "stream.toml"), *options],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the driver and its Java, at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def log_of(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")


def committed(folder: Path) -> int:
    """How many micro-batches are done."""
    return _numbered(folder / "checkpoint" / "commits")


def planned(folder: Path) -> int:
    """How many micro-batches have been begun."""
    return _numbered(folder / "checkpoint" / "offsets")


def _numbered(log: Path) -> int:
    """By the last one, since Spark clears away what is old."""
    return max((int(each.name) + 1 for each in log.glob("*") if each.name.isdigit()), default=0)
