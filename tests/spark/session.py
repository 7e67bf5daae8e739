"""The session of Spark that all tests and hunts share, as long as they run in one process."""

from __future__ import annotations

import os
import shutil
import sys

from pyspark.sql import SparkSession

from tests.servers.programs import skip_as_missing

from .class_archive import quick_start

HAS_JAVA = shutil.which("java") is not None or "JAVA_HOME" in os.environ


def shared_session() -> SparkSession:
    """Where there is no Java, what asks for it is skipped."""
    if not HAS_JAVA:
        skip_as_missing("Spark needs Java 17")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_SUBMIT_OPTS"] = quick_start()
    session = (
        SparkSession.builder.master("local[2]")
        .appName("ensue-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
