"""Ensue runs where executors are other processes, and through Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ensue.spark import package

from .conftest import HAS_JAVA
from .streaming.processes import ANY_PORT, QUICK_START

STORY = '''
import sys
from datetime import UTC, datetime, timedelta
from pyspark.sql import SparkSession
from ensue.spark import correlate, package

LIBRARY = """
eventtype A { attribute long K; };
eventtype Out { attribute long K; };
Out correlation Pairs (A a, A b, every 2 s t) a ; b by K {
    case true: push new Out { K = b.K };
}
Out correlation Late (A a, deadline 3 s d) a ; d by K { case true: push new Out { K = a.K }; }
"""

if __name__ == "__main__":
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    spark = (builder.remote if sys.argv[1] == "remote" else builder.master)(
        sys.argv[2]
    ).getOrCreate()
    spark.addArtifacts(package(), pyfile=True)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [(str(n), "A", start + timedelta(seconds=n), n % 4) for n in range(40)]
    events = spark.createDataFrame(rows, "id string, type string, time timestamp, K int")
    for order in (False, True):
        outputs = correlate(events, LIBRARY, order=order)
        print("outputs", order, sorted(r["id"] for r in outputs.collect()))
    spark.stop()
'''


def run_story(folder: Path, *arguments: str) -> list[str]:
    if not HAS_JAVA:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("Spark needs Java 17")
    script = folder / "story.py"
    script.write_text(STORY, "utf-8")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SPARK")
    }
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
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
    lines = [line for line in done.stdout.splitlines() if line.startswith("outputs")]
    assert len(lines) == 2, done.stderr[-3000:]
    return lines


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return run_story(tmp_path_factory.mktemp("local"), "master", "local[1]")


def test_local_outputs_are_the_same_with_and_without_order(local: list[str]) -> None:
    first, second = local

    assert first.removeprefix("outputs False ") == second.removeprefix("outputs True ")
    assert first.count("Pairs") == 20


def test_executors_in_other_processes_give_the_same(tmp_path: Path, local: list[str]) -> None:
    assert run_story(tmp_path, "master", "local-cluster[2,1,1024]") == local


def test_spark_connect_gives_the_same(tmp_path: Path, local: list[str]) -> None:
    assert run_story(tmp_path, "remote", "local[2]") == local


def test_the_archive_is_a_package_that_runs(tmp_path: Path) -> None:
    archive = package(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {archive!r})\n"
        "import ensue, pyarrow as pa\n"
        "from ensue.engine.batch import BatchEngine\n"
        "library = ensue.parse('eventtype A { }; A correlation C (A a) a { case true: push a; }')\n"
        "rows = pa.table({'id': ['1'], 'type': ['A'], 'time': ['2024-01-01T00:00:00Z']})\n"
        "made = BatchEngine(library.checked).push_batch(rows)\n"
        "print(ensue.__file__, made.num_rows)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.stdout.split() == [f"{archive}/ensue/__init__.py", "1"], done.stderr
