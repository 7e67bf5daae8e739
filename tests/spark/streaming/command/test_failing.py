"""What `ensue stream` says when it fails while it runs: why, and what to do, in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.cli import main
from ensue.cli.commands.stream import RunningStream
from ensue.errors import JobError, UsageError
from ensue.spark.streaming import pipeline
from ensue.spark.streaming.checkpoint.folder import check_location, lock
from ensue.spark.streaming.checkpoint.rules import rules_of_planned_batch
from ensue.spark.streaming.config import parse_config
from tests.spark.streaming.cutting import write_pieces
from tests.spark.streaming.sensors import LIBRARY, readings, table

from .processes import CONFIG, LATE_SINK

ROWS = readings(12, Random(1))
HOLDER = """
import sys
from ensue.spark.streaming.checkpoint.folder import lock
lock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def run(folder: Path, capsys: pytest.CaptureFixture[str], config: str = CONFIG) -> tuple[int, str]:
    """The code with which the command ends, and the last line that it has said."""
    (folder / "rules.cor").write_text(LIBRARY)
    # The session is that of other tests too, and its settings are left alone.
    text = config.replace('"spark.sql.shuffle.partitions" = 1', "")
    (folder / "stream.toml").write_text(text.format(folder=folder))
    with pytest.raises(SystemExit) as ended:
        main(["stream", str(folder / "rules.cor"), str(folder / "stream.toml")])
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "\tat " not in said
    return int(ended.value.code or 0), said.splitlines()[-1]


def test_a_file_of_other_types_is_named_and_what_to_do_about_it(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process of its own starts Spark more than once."""
    other = table(ROWS[6:]).set_column(4, "Value", pa.array(["warm"] * 6))
    write_pieces(tmp_path / "events", [table(ROWS[:6]), other])

    code, said = run(tmp_path, capsys)

    assert code == 2
    assert said.startswith("ensue: the stream has failed: ")
    assert "/events/00001.parquet" in said
    assert "need the columns of the first one" in said


def test_a_file_that_is_no_parquet_may_be_mended_and_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process of its own starts Spark more than once."""
    write_pieces(tmp_path / "events", [table(ROWS[:6]), table(ROWS[6:])])
    broken = tmp_path / "events" / "00001.parquet"
    whole, times = broken.read_bytes(), broken.stat()
    broken.write_bytes(b"x" * len(whole))
    os.utime(broken, ns=(times.st_atime_ns, times.st_mtime_ns))

    code, said = run(tmp_path, capsys)
    broken.write_bytes(whole)

    assert code == 2
    assert "/events/00001.parquet" in said
    assert "put a whole file in its place" in said
    assert run(tmp_path, capsys) == (0, "the whole source has been read")


def test_a_sink_that_cannot_be_written_to_is_named_with_its_micro_batch(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pieces(tmp_path / "events", [table(ROWS)])

    config = CONFIG + LATE_SINK.replace("/late", "/rules.cor/late")
    code, said = run(tmp_path, capsys, config)

    assert code == 2
    assert f"the writing of micro-batch 0 to `{tmp_path}/rules.cor/late` has failed" in said
    assert "not a directory" in said


def test_a_damaged_checkpoint_is_told_as_such(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pieces(tmp_path / "events", [table(ROWS)])
    assert run(tmp_path, capsys)[0] == 0
    offsets = tmp_path / "checkpoint" / "offsets"
    (offsets / ".0.crc").unlink()
    (offsets / "0").write_text("no offsets")

    code, said = run(tmp_path, capsys)

    assert code == 2
    assert f"the checkpoint `{tmp_path}/checkpoint` is damaged or belongs to another" in said


@pytest.mark.parametrize("text", [b"no rules", b"\xff\xfe"])
def test_a_damaged_record_of_rules_is_told(
    spark: SparkSession, tmp_path: Path, text: bytes
) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text("v1")
    (tmp_path / "ensue_rules").write_bytes(text)

    with pytest.raises(UsageError, match=r"cannot be read from `.*/ensue_rules`"):
        rules_of_planned_batch(spark, str(tmp_path), ensue.parse(LIBRARY))


def test_a_file_in_the_place_of_a_checkpoint_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(UsageError, match=r"since `.*/taken` is a file"):
        check_location(str(tmp_path / "taken" / "checkpoint"))
    check_location(str(tmp_path / "none" / "yet"))
    check_location("s3a://bucket/checkpoint")


def test_a_checkpoint_that_another_process_uses_is_refused_until_that_one_ends(
    tmp_path: Path,
) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, checkpoint], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match=rf"in use by another stream \(process {other.pid}\)"):
            lock(checkpoint)
    finally:
        other.kill()
        other.communicate()
    lock(checkpoint)
    # Who has it may ask for it again.
    lock(checkpoint)


def test_rules_that_had_the_stream_stopped_and_not_started_again_end_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Query:
        recentProgress = ()  # noqa: N815
        is_stopped = False

        def stop(self) -> None:
            self.is_stopped = True

    query = Query()
    monkeypatch.setattr(pipeline, "plan", lambda *_: None)
    monkeypatch.setattr(pipeline, "start", lambda *_, **__: query)
    config = parse_config(CONFIG.format(folder=tmp_path))
    running = RunningStream(None, ensue.parse(LIBRARY), config)

    def refuse(*_: object, **__: object) -> None:
        raise UsageError("no Kafka server answers")

    monkeypatch.setattr(pipeline, "start", refuse)
    with pytest.raises(JobError, match=r"cannot be started again: no Kafka server answers; the"):
        running.change(ensue.parse(LIBRARY))
    assert query.is_stopped


def test_files_of_parquet_may_be_passed_over_that_cannot_be_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pieces(tmp_path / "events", [table(ROWS[:6]), table(ROWS[6:])])
    (tmp_path / "events" / "00002.parquet").write_bytes(b"no columns here")
    config = CONFIG.replace("maxFilesPerTrigger = 1", 'ignoreCorruptFiles = "true"')

    assert run(tmp_path, capsys, config) == (0, "the whole source has been read")

    planned = (tmp_path / "checkpoint" / "sources" / "0" / "0").read_text()
    assert planned.count(".parquet") == 3
