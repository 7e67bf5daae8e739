"""One program that correlates, first a bounded input and then a stream, in a session elsewhere.

In comes a kind of session: executors that are processes of their own, or a server of Spark Connect.
Out goes what the program told and the folder it ran in. Nothing of this project is on the path of
the executors but what the program hands over. It runs once for each kind, since such a session is
seconds in the making; `test_elsewhere` and `streaming/test_elsewhere` look at its two halves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.servers.programs import skip_as_missing

from .class_archive import quick_start
from .session import HAS_JAVA
from .streaming.command.processes import ANY_PORT
from .streaming.cutting import write_pieces
from .streaming.sensors import LIBRARY, arriving, heartbeat, readings, table

EXECUTORS, CONNECT = "two executors", "connect"
SESSIONS = {EXECUTORS: ("master", "local-cluster[2,1,1024]"), CONNECT: ("remote", "local[2]")}
BATCH_RULES = """
eventtype A { attribute long K; };
eventtype Out { attribute long K; };
Out correlation Pairs (A a, A b, every 2 s t) a ; b by K {
    case true: push new Out { K = b.K };
}
Out correlation Late (A a, deadline 3 s d) a ; d by K { case true: push new Out { K = a.K }; }
"""
READINGS = readings(40, Random(11))
PROGRAM = """
import json
import os
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from pyspark.sql import SparkSession
from ensue.spark import correlate, package
from ensue.spark.streaming import FiguresListener, split


def dying(place, number, batches):
    # The batches as they are; that of a certain number costs its executor the life.
    for batch in batches:
        for each in range(1, number + 1) if batch.num_rows else ():
            try:
                os.close(os.open(f"{place}-{each}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            if each == number:
                # A worker is the child of a daemon, which is the child of an executor.
                with open(f"/proc/{os.getppid()}/stat") as file:
                    os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
                os._exit(1)
            break
        yield batch


def of_a_batch(folder, has_executors):
    rules = Path(folder, "batch.cor").read_text()
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [(str(n), "A", start + timedelta(seconds=n), n % 4) for n in range(40)]
    events = spark.createDataFrame(rows, "id string, type string, time timestamp, K int")
    told = {
        name: sorted(row["id"] for row in correlate(events, rules, order=order).collect())
        for name, order in (("plain", False), ("ordered", True))
    }
    if has_executors:
        # One executor dies before the shuffle, with rows that it has read, and one after it.
        read = events.mapInArrow(partial(dying, f"{folder}/batch-before", 1), events.schema)
        made = correlate(read, rules)
        made = made.mapInArrow(partial(dying, f"{folder}/batch-after", 1), made.schema)
        told["after deaths"] = sorted(row["id"] for row in made.collect())
    return told


def of_a_stream(folder, has_executors):
    figures = []
    spark.streams.addListener(FiguresListener(lambda told: figures.append(told.as_dict())))
    schema = "id string, type string, time timestamp, Sensor int, Value double"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    events = reader.parquet(f"{folder}/events")
    rules = Path(folder, "stream.cor").read_text()
    made = correlate(events, rules, lateness="2 s", buckets=3)
    outputs, left_out = written(made, f"{folder}/sink", f"{folder}/checkpoint")
    deadline = time.monotonic() + 300
    while sum(each["events"] for each in figures) < 43 and time.monotonic() < deadline:
        time.sleep(0.1)
    aside = [(row.id, row.kind) for row in left_out.collect()]
    told = {"rows": rows_of(outputs), "aside": aside, "figures": list(figures)}
    if has_executors:
        read = events.mapInArrow(partial(dying, f"{folder}/stream-before", 3), events.schema)
        made = correlate(read, rules, lateness="2 s", buckets=3)
        made = made.mapInArrow(partial(dying, f"{folder}/stream-after", 2), made.schema)
        survived, _ = written(made, f"{folder}/found", f"{folder}/survived")
        told["after deaths"] = rows_of(survived)
        deadline = time.monotonic() + 300
        while sum(each["events"] for each in figures) < 86 and time.monotonic() < deadline:
            time.sleep(0.1)
        told["figures after deaths"] = figures[len(told["figures"]):]
    return told


def written(made, sink, checkpoint):
    writer = made.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(sink).awaitTermination()
    return split(spark.read.parquet(sink))


def rows_of(outputs):
    return [row.asDict() for row in outputs.drop("time").collect()]


if __name__ == "__main__":
    kind, address, folder = sys.argv[1:]
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.executor.extraJavaOptions", os.environ["SPARK_SUBMIT_OPTS"])
    spark = (builder.remote if kind == "remote" else builder.master)(address).getOrCreate()
    spark.addArtifacts(package(), pyfile=True)
    given = folder, "cluster" in address
    print("told", json.dumps({"batch": of_a_batch(*given), "stream": of_a_stream(*given)}))
    spark.stop()
"""


@dataclass(frozen=True)
class Elsewhere:
    """What the program told of its two halves, and where it ran."""

    folder: Path
    batch: dict[str, Any]
    stream: dict[str, Any]

    def has_seen_die(self, *places: str) -> bool:
        """Whether executors have died at places, each with the number of the batch it died of."""
        return {*places} <= {each.name for each in self.folder.iterdir()}


def python_without_ensue(folder: Path) -> Path:
    """A Python with all that Ensue needs, and not Ensue: a place that is only named in a file of
    paths is not looked through for further such files, as that of an editable installation."""
    venv.create(folder, symlinks=True)
    inside = sysconfig.get_path("purelib", vars={"base": str(folder)})
    (Path(inside) / "others.pth").write_text(sysconfig.get_path("purelib"))
    python = folder / "bin" / "python"
    told = subprocess.run(
        [python, "-c", "import pyarrow, numba; import ensue.engine"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'ensue" in told.stderr, told.stderr
    return python


def run(folder: Path, session: str) -> Elsewhere:
    if not HAS_JAVA:
        skip_as_missing("Spark needs Java 17")
    (folder / "program.py").write_text(PROGRAM, "utf-8")
    (folder / "batch.cor").write_text(BATCH_RULES, "utf-8")
    (folder / "stream.cor").write_text(LIBRARY, "utf-8")
    came = arriving(READINGS, Random(12))[:-1]
    late = READINGS[0] | {"id": "late"}
    end = [heartbeat(READINGS[-1]["time"] + 30_000_000), late | {"id": None}]
    pieces = [came[:10], came[10:25], [*came[25:], late], end]
    write_pieces(folder / "events", [table(piece) for piece in pieces])
    kind, address = SESSIONS[session]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SPARK")
    }
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), kind, address, str(folder)],
        capture_output=True,
        text=True,
        timeout=1800,
        env={
            **environment,
            **(ANY_PORT if session == CONNECT else {}),
            "PYSPARK_PYTHON": str(python_without_ensue(folder / "workers")),
            "SPARK_SUBMIT_OPTS": quick_start(),
        },
        cwd=folder,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    assert lines, done.stderr[-3000:]
    return Elsewhere(folder, **json.loads(lines[0].removeprefix("told ")))
