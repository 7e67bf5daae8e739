"""`ensue run --engine spark` puts out what every other engine does, counts included."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import ensue
from ensue.cli import app
from ensue.cli.spark_run import start_on_spark
from ensue.errors import JobError

EXAMPLE = Path(__file__).parents[3] / "examples" / "cold-chain"
KEYED = """
eventtype A { attribute long K; };
eventtype B { attribute long K; };
B correlation First (A a) a by K { case true: push new B { K = a.K }; }
B correlation Over (B b from First, A c) b ; c { case true: push b; }
"""


def test_the_command_writes_the_same_lines(spark: SparkSession) -> None:
    arguments = ["run", str(EXAMPLE / "rules.cor"), "--events", str(EXAMPLE / "events.csv")]
    runner = CliRunner()
    here = runner.invoke(app, arguments)
    there = runner.invoke(app, [*arguments, "--engine", "spark"])

    assert there.stdout == here.stdout
    assert there.stdout.count("\n") == 2
    assert there.stderr == here.stderr


def test_rules_over_rules_and_events_without_a_key_are_counted_alike(spark: SparkSession) -> None:
    library = ensue.parse(KEYED)
    events = [
        ensue.Event.of("A", id=str(n), time=n, data={"K": None if n % 4 == 0 else n % 3})
        for n in range(20)
    ]
    here = library.start("step")
    wanted = [output for event in events for output in here.push(event)]
    there = start_on_spark(library, None, None, explain=False)
    for event in events:
        there.push(event)

    assert there.finish() == wanted
    assert there.counts.without_key == here.counts.without_key
    assert there.counts.outputs == here.counts.outputs == len(wanted) > 20


def test_what_streams_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ensue.UsageError, match="does not allow `--lateness`"):
        start_on_spark(ensue.parse(KEYED), None, 5, explain=False)


def test_the_demo_ends_with_the_same_answers_on_spark(spark: SparkSession) -> None:
    told = CliRunner().invoke(app, ["demo", "--spark"])

    assert told.exit_code == 0
    assert "equal: 2 outputs, every field and the order" in told.stdout


def test_the_demo_says_what_is_missing_for_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)

    told = CliRunner().invoke(app, ["demo", "--spark"])

    assert told.exit_code == 0
    assert "there is none in `JAVA_HOME` (/nowhere); install Java 17" in told.stdout
    assert "What to try next" in told.stdout


def test_without_java_the_engine_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)

    with pytest.raises(ensue.UsageError, match="Spark runs on Java, and there is none"):
        start_on_spark(ensue.parse(KEYED), None, None, explain=False)


def test_workers_that_cannot_be_started_are_told_in_words(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")
    run = start_on_spark(ensue.parse(KEYED), None, None, explain=False)
    run.push(ensue.Event.of("A", id="1", time=1, data={"K": 1}))

    with pytest.raises(JobError, match=r"the run has failed on Spark: .*/nowhere/python"):
        run.finish()
