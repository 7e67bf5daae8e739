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

from tests.spark.conftest import HAS_JAVA

from .cutting import write_pieces
from .processes import ANY_PORT, QUICK_START
from .sensors import LIBRARY, arriving, expected, found, heartbeat, readings, table

PROGRAM = """
import json
import os
import sys
import time
from pyspark.sql import SparkSession
from ensue.spark import correlate, package
from ensue.spark.streaming import FiguresListener, split

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
    with open(f"{folder}/rules.cor") as rules:
        made = correlate(events, rules.read(), lateness="2 s", buckets=3)
    writer = made.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{folder}/sink")
    query.awaitTermination()
    deadline = time.monotonic() + 300
    while sum(each["events"] for each in told) < 43 and time.monotonic() < deadline:
        time.sleep(0.1)
    outputs, left_out = split(spark.read.parquet(f"{folder}/sink"))
    rows = [row.asDict() for row in outputs.drop("time").collect()]
    aside = [(row.id, row.kind) for row in left_out.collect()]
    print("told", json.dumps({"rows": rows, "aside": aside, "figures": told}))
    spark.stop()
"""

SESSIONS = {
    "two executors": ("master", "local-cluster[2,1,1024]"),
    "connect": ("remote", "local[2]"),
}


@pytest.mark.parametrize("session", SESSIONS)
def test_a_stream_puts_out_the_same_elsewhere(tmp_path: Path, session: str) -> None:
    random = Random(11)
    rows = readings(40, random)
    came = arriving(rows, random)[:-1]
    late = rows[0] | {"id": "late"}
    end = [heartbeat(rows[-1]["time"] + 30_000_000), late | {"id": None}]
    pieces = [came[:10], came[10:25], [*came[25:], late], end]
    write_pieces(tmp_path / "events", [table(piece) for piece in pieces])
    (tmp_path / "rules.cor").write_text(LIBRARY)

    told = run(tmp_path, *SESSIONS[session])

    assert found(told["rows"]) == expected(rows)
    assert sorted(told["aside"], key=str) == [["late", "late"], [None, "rejected"]]
    figures = told["figures"]
    assert sum(each["events"] for each in figures) == 43
    assert sum(each["late"] for each in figures) == 1
    assert sum(each["rejected"] for each in figures) == 1
    counts = {
        rule: sum(each["rules"].get(rule, {}).get("outputs", 0) for each in figures)
        for rule in ("Jump", "Silence", "Extremes")
    }
    assert counts == {rule: sum(name == rule for name, *_ in expected(rows)) for rule in counts}


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
            "SPARK_SUBMIT_OPTS": QUICK_START,
        },
        cwd=folder,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    assert lines, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(lines[0].removeprefix("told "))
    return told
