"""Records written to topics and read from them, by Spark's own source and sink.

In come records as they are, key, value and headers; out go records as they are. So the tests see
what any other producer or consumer of Kafka would see, and not what our own reading makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ensue.spark.streaming.sinks import IN_FLIGHT

RECORD = (
    "key binary, value binary, headers array<struct<key: string, value: binary>>, partition int"
)


@dataclass(frozen=True)
class Plain:
    """A record. A header that is there twice is twice in the list."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int | None = None
    offset: int | None = field(default=None, compare=False)

    @property
    def header(self) -> Mapping[str, str]:
        return {name: value.decode() for name, value in self.headers}


@dataclass(frozen=True)
class Kafka:
    spark: SparkSession
    servers: str

    def write(self, topic: str, records: Sequence[Plain]) -> None:
        """In their order, to the partitions that they name."""
        rows = [
            (
                each.key,
                each.value,
                [{"key": name, "value": value} for name, value in each.headers],
                each.partition,
            )
            for each in records
        ]
        frame = self.spark.createDataFrame(rows, RECORD).coalesce(1)
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer = writer.option(IN_FLIGHT, "1").option("topic", topic)
        writer.option("includeHeaders", "true").save()

    def read(self, topic: str) -> list[Plain]:
        """All that is in a topic, by partition and offset."""
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", topic).option("includeHeaders", "true")
        rows: list[Any] = reader.load().orderBy("partition", "offset").collect()
        return [
            Plain(
                _bytes(row["value"]),
                _bytes(row["key"]),
                tuple((each["key"], bytes(each["value"])) for each in row["headers"] or ()),
                row["partition"],
                row["offset"],
            )
            for row in rows
        ]

    def stream(self, topic: str, **options: Any) -> DataFrame:
        reader = self.spark.readStream.format("kafka").option(
            "kafka.bootstrap.servers", self.servers
        )
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        return reader.option("includeHeaders", "true").options(**options).load()


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
