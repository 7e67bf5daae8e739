"""Ensue runs where executors are other processes, and through Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ensue
from ensue.events.event import Event
from ensue.spark import package

from .class_archive import quick_start
from .conftest import HAS_JAVA
from .streaming.processes import ANY_PORT

LIBRARY = """
eventtype A { attribute long K; };
eventtype Out { attribute long K; };
Out correlation Pairs (A a, A b, every 2 s t) a ; b by K {
    case true: push new Out { K = b.K };
}
Out correlation Late (A a, deadline 3 s d) a ; d by K { case true: push new Out { K = a.K }; }
"""
STORY = '''
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from pyspark.sql import SparkSession
from ensue.spark import correlate, package

HERE = os.getcwd()
LIBRARY = Path("rules.cor").read_text()

def dying(when, batches):
    """The batches as they are; the first that comes costs its executor the life."""
    for batch in batches:
        try:
            os.close(os.open(f"{HERE}/died-{when}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            yield batch
        else:
            # A worker is the child of a daemon, which is the child of an executor.
            with open(f"/proc/{os.getppid()}/stat") as file:
                os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
            os._exit(1)


if __name__ == "__main__":
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.executor.extraJavaOptions", os.environ["SPARK_SUBMIT_OPTS"])
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
    if "cluster" in sys.argv[2]:
        # One executor dies before the shuffle, with rows that it has read, and one after it.
        read = events.mapInArrow(partial(dying, "before"), events.schema)
        made = correlate(read, LIBRARY)
        made = made.mapInArrow(partial(dying, "after"), made.schema)
        print("outputs after deaths", sorted(r["id"] for r in made.collect()))
        print("deaths", sorted(each.name for each in Path.cwd().glob("died-*")))
    spark.stop()
'''


def run_story(folder: Path, *arguments: str) -> list[str]:
    if not HAS_JAVA:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("Spark needs Java 17")
    script = folder / "story.py"
    script.write_text(STORY, "utf-8")
    (folder / "rules.cor").write_text(LIBRARY, "utf-8")
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
            "SPARK_SUBMIT_OPTS": quick_start(),
        },
        cwd=folder,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("outputs", "deaths"))]
    assert len(lines) >= 2, done.stderr[-3000:]
    return lines


def wanted() -> str:
    """The ids of what the definitions say, as the story prints them."""
    start = 1_704_067_200_000_000
    events = [Event(str(n), "s", "A", start + n * 1_000_000, {"K": n % 4}, {}) for n in range(40)]
    made = ensue.parse(LIBRARY).run(events, engine="reference")
    return str(sorted(output.id for output in made))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return run_story(tmp_path_factory.mktemp("cluster"), "master", "local-cluster[2,1,1024]")


def test_executors_in_other_processes_give_what_the_reference_does(cluster: list[str]) -> None:
    assert cluster[:2] == [f"outputs False {wanted()}", f"outputs True {wanted()}"]
    assert wanted().count("Pairs") == 20


def test_executors_that_die_on_either_side_of_the_shuffle_change_nothing(
    cluster: list[str],
) -> None:
    assert cluster[2:] == [
        f"outputs after deaths {wanted()}",
        "deaths ['died-after', 'died-before']",
    ]


def test_spark_connect_gives_what_the_reference_does(tmp_path: Path) -> None:
    assert run_story(tmp_path, "remote", "local[2]") == [
        f"outputs False {wanted()}",
        f"outputs True {wanted()}",
    ]


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
