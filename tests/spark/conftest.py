"""One Spark session for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.servers.programs import skip_as_missing

if TYPE_CHECKING:
    from .elsewhere import Elsewhere

pyspark = pytest.importorskip("pyspark", reason="the `spark` extra is not installed")

HAS_JAVA = shutil.which("java") is not None or "JAVA_HOME" in os.environ

from pyspark.sql import SparkSession  # noqa: E402


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if not HAS_JAVA:
        skip_as_missing("Spark needs Java 17")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("ensue-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Elsewhere]:
    """What a program told in a session of the kind that is asked for; it runs once for each."""
    from .elsewhere import run

    return cache(lambda session: run(tmp_path_factory.mktemp("elsewhere"), session))
