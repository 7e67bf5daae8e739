"""Streams run where executors are other processes, and through Spark Connect.

A program of its own starts each kind of session, hands the package to it, runs a stream of four
micro-batches with a file sink, and prints what is there in the end. Nothing of this project is on
the path of the executors but what the program hands over.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.spark.class_archive import quick_start
from tests.spark.conftest import HAS_JAVA

from .cutting import write_pieces
from .processes import ANY_PORT
from .sensors import LIBRARY, arriving, expected, found, heartbeat, readings, table

PROGRAM = """
import json
import os
import signal
import sys
import time
from functools import partial
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


def stream_with_deaths(folder, events, rules):
    read = events.mapInArrow(partial(dying, f"{folder}/before", 3), events.schema)
    made = correlate(read, rules, lateness="2 s", buckets=3)
    made = made.mapInArrow(partial(dying, f"{folder}/after", 2), made.schema)
    writer = made.writeStream.format("parquet").option("checkpointLocation", f"{folder}/survived")
    writer.trigger(availableNow=True).start(f"{folder}/found").awaitTermination()
    outputs, _ = split(spark.read.parquet(f"{folder}/found"))
    return [row.asDict() for row in outputs.drop("time").collect()]


if __name__ == "__main__":
    kind, address, folder = sys.argv[1:]
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.executor.extraJavaOptions", os.environ["SPARK_SUBMIT_OPTS"])
    spark = (builder.remote if kind == "remote" else builder.master)(address).getOrCreate()
    spark.addArtifacts(package(), pyfile=True)
    told = []
    spark.streams.addListener(FiguresListener(lambda figures: told.append(figures.as_dict())))
    schema = "id string, type string, time timestamp, Sensor int, Value double"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    events = reader.parquet(f"{folder}/events")
    with open(f"{folder}/rules.cor") as file:
        rules = file.read()
    made = correlate(events, rules, lateness="2 s", buckets=3)
    writer = made.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{folder}/sink")
    query.awaitTermination()
    deadline = time.monotonic() + 300
    while sum(each["events"] for each in told) < 43 and time.monotonic() < deadline:
        time.sleep(0.1)
    outputs, left_out = split(spark.read.parquet(f"{folder}/sink"))
    found = [row.asDict() for row in outputs.drop("time").collect()]
    aside = [(row.id, row.kind) for row in left_out.collect()]
    found = {"rows": found, "aside": aside, "figures": list(told)}
    if "cluster" in address:
        found["after deaths"] = stream_with_deaths(folder, events, rules)
    print("told", json.dumps(found))
    spark.stop()
"""

SESSIONS = {
    "two executors": ("master", "local-cluster[2,1,1024]"),
    "connect": ("remote", "local[2]"),
}


ROWS = readings(40, Random(11))


@pytest.fixture(scope="module", params=SESSIONS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program has left in its folder, with what it told in `told`."""
    folder = tmp_path_factory.mktemp("elsewhere")
    came = arriving(ROWS, Random(12))[:-1]
    late = ROWS[0] | {"id": "late"}
    end = [heartbeat(ROWS[-1]["time"] + 30_000_000), late | {"id": None}]
    pieces = [came[:10], came[10:25], [*came[25:], late], end]
    write_pieces(folder / "events", [table(piece) for piece in pieces])
    (folder / "rules.cor").write_text(LIBRARY)
    (folder / "told").write_text(json.dumps(run(folder, *SESSIONS[request.param])))
    return folder


def test_a_stream_puts_out_the_same_elsewhere(folder: Path) -> None:
    told = json.loads((folder / "told").read_text())

    assert found(told["rows"]) == expected(ROWS)
    assert sorted(told["aside"], key=str) == [["late", "late"], [None, "rejected"]]
    figures = told["figures"]
    assert sum(each["events"] for each in figures) == 43
    assert sum(each["late"] for each in figures) == 1
    assert sum(each["rejected"] for each in figures) == 1
    counts = {
        rule: sum(each["rules"].get(rule, {}).get("outputs", 0) for each in figures)
        for rule in ("Jump", "Silence", "Extremes")
    }
    assert counts == {rule: sum(name == rule for name, *_ in expected(ROWS)) for rule in counts}


@pytest.mark.parametrize("folder", ["two executors"], indirect=True)
def test_executors_that_die_in_the_middle_of_a_stream_change_nothing(folder: Path) -> None:
    told = json.loads((folder / "told").read_text())

    # The third piece was read, and the second of the outputs made, by an executor that died of it.
    assert {"before-3", "after-2"} <= {each.name for each in folder.iterdir()}
    assert found(told["after deaths"]) == expected(ROWS)


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    if not HAS_JAVA:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("Spark needs Java 17")
    script = folder / "program.py"
    script.write_text(PROGRAM, "utf-8")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SPARK")
    }
    done = subprocess.run(
        [sys.executable, str(script), *arguments, str(folder)],
        capture_output=True,
        text=True,
        timeout=900,
        env={
            **environment,
            **(ANY_PORT if arguments[0] == "remote" else {}),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_SUBMIT_OPTS": quick_start(),
        },
        cwd=folder,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    assert lines, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(lines[0].removeprefix("told "))
    return told
