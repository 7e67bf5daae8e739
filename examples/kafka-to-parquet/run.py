"""From a topic of Kafka to Parquet, in one command: `python run.py`.

It starts a broker of its own, sends an afternoon of payments in four waves, runs the rules over
each wave from where they had stopped, and shows what was found. The hours of the afternoon pass in
seconds, so that each wave is sent before it is read: otherwise, what is sent first and read second
would be an hour late. Everything that it writes is in the folder that it names at the end; the
broker and its data are gone by then.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import msgspec
from producer import Afternoon
from pyspark.sql import DataFrame, SparkSession

import ensue
from ensue.spark.kafka.broker import TrialBroker
from ensue.spark.kafka.connector import with_kafka
from ensue.spark.kafka.records import Record
from ensue.spark.session import open_session
from ensue.spark.streaming import pipeline
from ensue.spark.streaming.config import AVAILABLE_NOW, load_config
from ensue.spark.streaming.kafka import RECORD_DDL

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=20_000, help="how many ordinary payments")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where results go; a new one if not given")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="kafka-to-parquet-"))
    folder.mkdir(parents=True, exist_ok=True)
    # The paths in `stream.toml` are taken from here.
    os.chdir(folder)
    afternoon = Afternoon(given.events, given.seed)
    library = ensue.load(HERE / "rules.cor")
    config = load_config(HERE / "stream.toml")

    print("starting Kafka and Spark; the first time, their jars are fetched")
    with TrialBroker(partitions=4) as broker:
        spark = with_kafka(open_session())
        source = msgspec.structs.replace(config.source, servers=broker.servers)
        stream = msgspec.structs.replace(config.stream, trigger=AVAILABLE_NOW)
        config = msgspec.structs.replace(config, source=source, stream=stream)
        for number, wave in enumerate(afternoon.waves(), 1):
            send(spark, broker.servers, "payments", wave)
            size = sum(len(record.value or b"") for record in wave) / 2**20
            print(f"wave {number}: {len(wave):,} records, {size:.1f} MB")
            pipeline.start(spark, library, config).awaitTermination()
        show(spark)
    print(f"\nall of it is in {folder}")


def send(spark: SparkSession, servers: str, topic: str, records: list[Record]) -> None:
    """What a producer of any language does, done by Spark."""
    rows = [
        (each.key, each.value, [{"key": name, "value": text} for name, text in each.headers])
        for each in records
    ]
    writer = spark.createDataFrame(rows, RECORD_DDL).write.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", topic)
    # One request at a time: the topic comes into being with the first.
    writer = writer.option("kafka.max.in.flight.requests.per.connection", 1)
    writer.option("includeHeaders", "true").save()


def show(spark: SparkSession) -> None:
    table("matches", spark.read.parquet("matches"), "time", "correlation", "partitionkey")
    table("late events", spark.read.parquet("late"), "time", "type", "id")
    table("rejected", spark.read.parquet("rejected"), "partition", "offset", "problems")


def table(title: str, rows: DataFrame, *columns: str) -> None:
    print(f"\n{title}: {rows.count()}")
    for row in rows.select(*columns).orderBy(*columns[:2]).collect():
        print("  " + "  ".join(str(value) for value in row if value is not None))


if __name__ == "__main__":
    main()
