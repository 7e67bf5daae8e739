"""Spark's own Kafka source and sink, in a session that was started without them.

In comes a session; out goes the same session, in which `format("kafka")` works. A connector that
Spark was started with (`--jars`, `--packages`, or an image that has it) is used as it is. Otherwise
a pinned set of jars is fetched and added to the session, which sends them to its executors.
"""

from __future__ import annotations

from pyspark import __version__ as spark_version
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ensue.errors import UsageError
from ensue.spark.kafka.jars import fetch

CONNECTORS = {
    "4.3": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    )
}
"""The tested jars by version of Spark. Their own dependencies are not fetched, since Spark has all
of them already."""


_given_to: list[str] = []
"""The Spark application of this process to which the jars were added, if there is one."""


def jars() -> list[str]:
    """The paths of the connector for this Spark, for `--jars`, fetched if they are not there yet.

    Raises `UsageError` if they cannot be had.
    """
    return [str(jar) for jar in fetch(_pinned(), with_dependencies=False)]


def with_kafka(spark: SparkSession) -> SparkSession:
    """The session, with Kafka as a source and a sink. Raises `UsageError` if that cannot be."""
    is_remote = ".connect." in type(spark).__module__
    if not is_remote:
        _check_first(spark)
    if has_kafka(spark):
        return spark
    if is_remote:
        # A client cannot add jars to a server.
        raise UsageError(
            "the Spark server has no Kafka connector, and a client cannot add it: start the server"
            " with the jars that `ensue.spark.kafka.connector.jars()` names, as"
            " `--jars JAR,JAR,...`"
        )
    _given_to[:] = [_application(spark)]
    for jar in jars():
        spark.sql(f"ADD JAR '{jar}'")
    if not has_kafka(spark):
        raise UsageError(
            "the Kafka connector was added, and Spark does not find it: start Spark with the jars"
            " that `ensue.spark.kafka.connector.jars()` names, as `--jars JAR,JAR,...`"
        )
    return spark


def _check_first(spark: SparkSession) -> None:
    """Raises `UsageError` if another application of this process was given the connector.

    Each application loads its own copy of the classes, and they can be registered with Java only
    once: the format would be known, and reading would fail.
    """
    if _given_to and _given_to != [_application(spark)]:
        raise UsageError(
            "an earlier Spark session of this process, which has been stopped, was given the Kafka"
            " connector, and Java takes it only once: keep that session and do not stop it, start"
            " a new process, or start Spark with the jars that"
            " `ensue.spark.kafka.connector.jars()` names, as `--jars JAR,JAR,...`"
        )


def _application(spark: SparkSession) -> str:
    return spark.conf.get("spark.app.id") or ""


def has_kafka(spark: SparkSession) -> bool:
    """Whether Spark knows the format; no broker is contacted."""
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
