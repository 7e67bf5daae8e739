"""What becomes of a failure on Spark: one sentence that says why."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ensue.errors import JobError, UsageError
from ensue.library import parse
from ensue.spark.batch.files import FileRun
from ensue.spark.failures import as_job_error, reason_of
from ensue.spark.streaming.config import RulesConfig
from ensue.spark.streaming.rules_table import WatchedTable

LIBRARY = "eventtype A {}\nA ecl R (A a) { a }\n"


def test_the_words_of_java_are_left_out() -> None:
    text = (
        "An error occurred while calling o5.load.\n"
        ": org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while"
        " reading file file:/a.parquet.  SQLSTATE: KD001\n"
        "\tat org.apache.spark.Some.thing(Some.scala:1)\n"
        "Caused by: java.lang.RuntimeException: file:/a.parquet is not a Parquet file\n"
        "\t... 9 more\n"
    )
    assert reason_of(text) == (
        "Encountered error while reading file file:/a.parquet (file:/a.parquet is not a Parquet"
        " file)"
    )


def test_the_numbers_of_a_task_are_left_out() -> None:
    text = (
        "Job aborted due to stage failure: Task 0 in stage 4.0 failed 1 times, most recent failure:"
        " Lost task 0.0 in stage 4.0 (TID 6) (host executor driver): java.io.IOException: no room\n"
        "\tat org.apache.spark.Some.thing(Some.scala:1)\n"
    )
    assert reason_of(text) == "no room"


def test_of_stages_that_failed_together_the_first_one_says_why() -> None:
    task = (
        "SparkException: Job aborted due to stage failure: Task 0 in stage {0}.0 failed 1 times,"
        " most recent failure: Lost task 0.0 in stage {0}.0 (TID {0}) (host executor driver):"
        ' java.io.IOException: Cannot run program "/nowhere/python": error=2, No such file\n'
        "\tat org.apache.spark.Some.thing(Some.scala:1)\n"
        "Caused by: java.io.IOException: error=2, No such file\n"
        "\t... 9 more\n"
    )
    text = (
        "An error occurred while calling o5.collect.\n"
        ": org.apache.spark.SparkException: [STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple"
        " failures (2) in stage materialization: \n"
        f"  1. {task.format(7)}"
        f"  2. {task.format(8)}"
        f"\tSuppressed: org.apache.spark.{task.format(8)}"
        f"Caused by: org.apache.spark.{task.format(7)}"
    )
    assert reason_of(text) == 'Cannot run program "/nowhere/python": error=2, No such file'


def test_the_last_line_of_a_worker_says_most() -> None:
    text = (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n'
        "ensue.errors.SnapshotError: the state was written by a newer version\n"
        "\n"
        "\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:1)\n"
    )
    assert reason_of(text) == "the state was written by a newer version"


def test_a_failure_with_a_known_cure_is_told_by_it() -> None:
    told = reason_of("x\nCaused by: org.apache.kafka.UnknownTopicOrPartitionException: y\n")
    assert told.startswith("a topic of `[source]` is not on its servers")


def test_a_file_that_is_no_parquet_is_named_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no columns here")
    with pytest.raises(UsageError, match=r"cannot be read: .*a\.parquet.*not a Parquet file"):
        FileRun.of(spark, parse(LIBRARY), [str(tmp_path)], "parquet")


def test_a_file_that_turns_out_to_be_none_while_it_is_read_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["1"], "type": ["A"]}), file)
    events = spark.read.parquet(str(tmp_path))
    file.write_bytes(b"x" * file.stat().st_size)
    with (
        pytest.raises(JobError, match=r"the run has failed on Spark: .*a\.parquet") as raised,
        as_job_error("the run"),
    ):
        events.collect()
    assert "\n" not in str(raised.value)


def test_rules_that_are_read_while_they_are_written_leave_those_of_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"name": ["all"], "text": [LIBRARY]})
    pq.write_table(rows, tmp_path / "rules.parquet")
    watched = WatchedTable(
        spark, RulesConfig(path=str(tmp_path), format="parquet", every="0.001 ms")
    )
    (tmp_path / "rules.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UsageError, match=r"cannot be read: .*rules\.parquet"):
        watched.have_changed()
    # It is said once, and the next look finds what has been written by then.
    assert not watched.have_changed()
    pq.write_table(rows.set_column(1, "text", [[LIBRARY + "\n"]]), tmp_path / "rules.parquet")
    assert watched.have_changed()
