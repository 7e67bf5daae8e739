"""`examples/kafka-to-parquet` does what its page says, in a small edition.

It is a process of its own, for it goes to the folder of its results before it starts Spark. The
broker that it would start is that of the other tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.spark.class_archive import quick_start

from .topics import Kafka

EXAMPLE = Path(__file__).parents[3] / "examples" / "kafka-to-parquet"
EVENTS = 400
RUN = """
import sys
from contextlib import nullcontext
from types import SimpleNamespace

sys.path.insert(0, sys.argv.pop(1))
import run

broker = SimpleNamespace(servers=sys.argv.pop(1))
run.TrialBroker = lambda **_: nullcontext(broker)
run.main()
"""


def test_what_was_planted_is_found_and_nothing_else(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example is run as it is: a broker, a producer and a stream as processes."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    afternoon = import_module("producer").Afternoon(EVENTS, seed=3)
    records = [record for wave in afternoon.waves() for record in wave]
    # Payments are in binary mode, with their attributes in headers.
    sizes = [len(each.value or b"") for each in records if len(each.headers) > 1]

    asked = ["--events", str(EVENTS), "--seed", "3", "--folder", str(tmp_path / "results")]

    done = subprocess.run(
        [sys.executable, "-c", RUN, str(EXAMPLE), kafka.servers, *asked],
        env={**os.environ, "SPARK_SUBMIT_OPTS": quick_start()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=900,
        check=False,
    )

    said = done.stdout.decode()
    assert done.returncode == 0, said
    read = kafka.spark.read
    rows = read.parquet(str(tmp_path / "results" / "matches")).collect()
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["correlation"], set()).add(row["partitionkey"])
    planted = afternoon.planted
    assert found == {
        "CardTesting": planted.tested,
        "AccountTakeover": planted.taken_over,
        "LostTerminal": planted.lost,
    }
    late = read.parquet(str(tmp_path / "results" / "late")).collect()
    assert {row["id"] for row in late} == planted.late
    assert read.parquet(str(tmp_path / "results" / "rejected")).count() == planted.broken
    assert "late events: 3" in said
    assert 700 < sum(sizes) / len(sizes) < 1500
