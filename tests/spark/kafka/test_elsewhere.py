"""Kafka reaches rules wherever Spark runs: in other processes, through Spark Connect, submitted.

One program stands for a user's: it takes the session that it is given, sends six records to a topic
and reads them with a rule. Each test starts it in another way. Nothing of this project is on the
path of the workers but what the documented way hands to them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from ensue.spark import package
from ensue.spark.kafka.connector import jars
from tests.spark.class_archive import quick_start
from tests.spark.streaming.command.processes import ANY_PORT

PROGRAM = '''
import sys
from pyspark.sql import SparkSession
from ensue.spark import package
from ensue.spark.streaming import split
from ensue.spark.kafka.connector import has_kafka, with_kafka
from ensue.spark.streaming.kafka import RECORD_DDL, correlate_kafka

LIBRARY = """
eventtype A { attribute long K; };
eventtype Out { attribute long K; };
Out correlation Pairs (A a, A b) a ; b by K { case true: push new Out { K = b.K }; }
"""

if __name__ == "__main__":
    kind, address, servers, jars, topic = sys.argv[1:]
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1")
    if kind == "remote":
        # The server is started with the connector, for a client cannot add it.
        builder = builder.remote(address).config("spark.jars", jars)
    elif kind == "master":
        builder = builder.master(address)
    spark = builder.getOrCreate()
    if kind != "submitted":
        spark.addArtifacts(package(), pyfile=True)
    print("told", has_kafka(spark))
    with_kafka(spark)
    event = (
        '{"id": "%d", "source": "s", "type": "A", "time": "2024-05-06T07:00:0%dZ",'
        ' "data": {"K": %d}}'
    )
    rows = [(None, (event % (n, n, n % 2)).encode(), []) for n in range(6)]
    writer = spark.createDataFrame(rows, RECORD_DDL).coalesce(1).write.format("kafka")
    writer = writer.option("kafka.max.in.flight.requests.per.connection", 1)
    writer.option("kafka.bootstrap.servers", servers).option("topic", topic).save()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    records = reader.option("includeHeaders", "true").load()
    made = split(correlate_kafka(records, LIBRARY, lateness="0 s", buckets=2))[0]
    writer = made.writeStream.format("parquet").option("checkpointLocation", "checkpoint")
    writer.trigger(availableNow=True).start("found").awaitTermination()
    print("told", sorted(row.causes for row in spark.read.parquet("found").collect()))
    spark.stop()
'''
TWO_SESSIONS = """
from pyspark.sql import SparkSession
from ensue.errors import UsageError
from ensue.spark.kafka.connector import with_kafka

if __name__ == "__main__":
    for _ in range(2):
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = builder.getOrCreate()
        try:
            with_kafka(with_kafka(spark))
            print("taken")
        except UsageError as error:
            print("told", error)
        spark.stop()
"""
FOUND = "['2', '3']"


def test_executors_in_other_processes_read_topics(tmp_path: Path, kafka_servers: str) -> None:
    """A driver and two executors start: three times Java."""
    told = run(tmp_path, [sys.executable], "master", "local-cluster[1,1,1024]", kafka_servers)

    assert told == ["False", FOUND]


def test_a_server_of_spark_connect_reads_topics(tmp_path: Path, kafka_servers: str) -> None:
    """A server of Spark Connect starts beside its client."""
    told = run(tmp_path, [sys.executable], "remote", "local[1]", kafka_servers)

    assert told == ["True", FOUND]


def test_a_submitted_program_reads_topics(tmp_path: Path, kafka_servers: str) -> None:
    """`spark-submit` starts Java twice, and looks for the connector."""
    archive = package(tmp_path)
    submit = Path(next(iter(pyspark.__path__))) / "bin" / "spark-submit"
    command = [str(submit), "--master", "local[1]", "--py-files", archive, "--jars", connector()]

    told = run(tmp_path, command, "submitted", "-", kafka_servers)

    assert told == ["True", FOUND]


def test_a_process_that_has_stopped_a_session_with_the_connector_is_told(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(TWO_SESSIONS, "utf-8")

    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=900,
        env=environment(),
        cwd=tmp_path,
        check=False,
    )

    first, second = done.stdout.splitlines()
    assert first == "taken"
    assert second.startswith("told an earlier Spark session of this process")


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}
    return {**kept, "PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": quick_start()}


def connector() -> str:
    return ",".join(jars())


def run(folder: Path, command: list[str], kind: str, address: str, servers: str) -> list[str]:
    script = folder / "program.py"
    script.write_text(PROGRAM, "utf-8")
    topic = f"elsewhere-{kind}"
    done = subprocess.run(
        [*command, str(script), kind, address, servers, connector(), topic],
        capture_output=True,
        text=True,
        timeout=900,
        env={**environment(), **(ANY_PORT if kind == "remote" else {})},
        cwd=folder,
        check=False,
    )
    told = [
        line.removeprefix("told ") for line in done.stdout.splitlines() if line.startswith("told ")
    ]
    if len(told) < 2:
        pytest.fail(done.stderr[-4000:])
    return told
