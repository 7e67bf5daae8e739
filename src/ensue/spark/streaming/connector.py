"""Spark's own Kafka source and sink, in a session that was started without them.

In comes a session; out goes the same one, in which `format("kafka")` works. Who starts Spark with
the connector (`--packages`, or an image that has it) keeps that one. Otherwise a pinned set of jars
is fetched and handed to the session, which sends them to its executors.
"""

from __future__ import annotations

from pyspark import __version__ as spark_version
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ensue.errors import UsageError
from ensue.spark.streaming.jars import fetch

CONNECTORS = {
    "4.3": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    )
}
"""By the version of Spark, what was tested with it. They are taken as they are, without what they
ask for themselves, since Spark has all of that already."""


def with_kafka(spark: SparkSession) -> SparkSession:
    """The session, with Kafka as a source and a sink. Raises `UsageError` if that cannot be."""
    if has_kafka(spark):
        return spark
    if ".connect." in type(spark).__module__:
        # The server has jars of its own, which a client cannot add to.
        raise UsageError(
            "the Spark server has no Kafka connector: start it with"
            f" `--packages org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}`"
        )
    for jar in fetch(_pinned(), with_dependencies=False):
        spark.sql(f"ADD JAR '{jar}'")
    if not has_kafka(spark):
        raise UsageError(
            "the Kafka connector was added, and Spark does not find it: start Spark with"
            f" `--packages org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}`"
        )
    return spark


def has_kafka(spark: SparkSession) -> bool:
    """Whether Spark knows the format; no broker is asked."""
    reader = spark.readStream.format("kafka").option("subscribe", "any")
    try:
        _ = reader.option("kafka.bootstrap.servers", "localhost:9").load().schema
    except AnalysisException:
        return False
    return True


def _pinned() -> tuple[str, ...]:
    minor = ".".join(spark_version.split(".")[:2])
    if minor not in CONNECTORS:
        raise UsageError(
            f"no Kafka connector has been tested with Spark {spark_version} here (tested:"
            f" {', '.join(CONNECTORS)}): name it yourself when you start Spark, as"
            f" `spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}`"
        )
    return CONNECTORS[minor]
