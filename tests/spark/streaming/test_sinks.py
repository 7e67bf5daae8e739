"""The list that Spark's file sink keeps is held against the checkpoint before a stream starts."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.errors import UsageError
from ensue.spark.streaming import pipeline
from ensue.spark.streaming.config import parse_config
from ensue.spark.streaming.sinks import check_sink_log

from .command.processes import CONFIG
from .cutting import write_pieces
from .sensors import LIBRARY, readings, table

ENTRY = 'v1\n{"path":"file:///a.parquet","size":1,"action":"add"}'


def written(folder: Path, commits: int, entries: dict[str, str]) -> tuple[str, str]:
    """A sink with these entries in its list, and a checkpoint that has done so many."""
    sink, checkpoint = folder / "sink", folder / "checkpoint"
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True)
        for number in range(commits):
            (checkpoint / log / str(number)).write_text("v1")
    (sink / "_spark_metadata").mkdir(parents=True)
    for name, text in entries.items():
        (sink / "_spark_metadata" / name).write_text(text)
    return str(sink), str(checkpoint)


def test_a_list_that_a_stream_has_made_fits_and_one_that_has_gone_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = readings(12, Random(1))
    write_pieces(tmp_path / "events", [table(rows[:6]), table(rows[6:])])
    text = CONFIG.replace('"spark.sql.shuffle.partitions" = 1', "")
    config = parse_config(text.format(folder=tmp_path) + "together = true")
    library = ensue.parse(LIBRARY)
    pipeline.start(spark, library, config).awaitTermination()
    sink, checkpoint = str(config.sink.path), config.stream.checkpoint

    check_sink_log(sink, checkpoint)
    (tmp_path / "sink" / "_spark_metadata").rename(tmp_path / "gone")

    with pytest.raises(UsageError, match=r"`_spark_metadata`, is missing, and micro-batch 1 has"):
        pipeline.start(spark, library, config)


def test_a_list_that_ends_before_the_checkpoint_does_is_told(tmp_path: Path) -> None:
    places = written(tmp_path, 3, {"0": ENTRY, "1": "v1"})

    with pytest.raises(UsageError, match="ends with micro-batch 1, and micro-batch 2 has"):
        check_sink_log(*places)


def test_a_gap_in_the_list_is_told(tmp_path: Path) -> None:
    places = written(tmp_path, 3, {"0": ENTRY, "2": ENTRY})

    with pytest.raises(UsageError, match="has no entry of micro-batch 1: readers would miss rows"):
        check_sink_log(*places)


@pytest.mark.parametrize("text", ["", "v1\n{", "v2\n{}", "v1\n3", "\0"])
def test_an_entry_that_is_broken_is_named(tmp_path: Path, text: str) -> None:
    places = written(tmp_path, 2, {"0": ENTRY, "1": text})

    with pytest.raises(UsageError, match=r"has an entry that is broken, `.*/_spark_metadata/1`"):
        check_sink_log(*places)


def test_entries_before_one_that_sums_them_up_are_not_missed(tmp_path: Path) -> None:
    check_sink_log(
        *written(tmp_path, 12, {"3": "broken", "9.compact": ENTRY, "10": "v1", "11": ENTRY})
    )


def test_a_micro_batch_that_is_listed_and_not_committed_fits(tmp_path: Path) -> None:
    check_sink_log(*written(tmp_path, 1, {"0": ENTRY, "1": ENTRY}))


def test_a_new_checkpoint_over_the_list_of_another_is_refused(tmp_path: Path) -> None:
    sink, _ = written(tmp_path, 1, {"0": ENTRY})

    with pytest.raises(UsageError, match=r"would be taken for written: give another `path`"):
        check_sink_log(sink, str(tmp_path / "new"))


def test_places_that_only_spark_reaches_are_not_asked() -> None:
    check_sink_log("s3a://bucket/sink", "s3a://bucket/checkpoint")
