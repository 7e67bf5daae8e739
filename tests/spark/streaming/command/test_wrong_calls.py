"""`ensue stream`: what cannot work is said in a person's words, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ensue.cli import main
from tests.spark.streaming.cutting import write_pieces
from tests.spark.streaming.sensors import LIBRARY, table

from .processes import CONFIG


def refused(folder: Path, config: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of a configuration that cannot be used."""
    (folder / "rules.cor").write_text(LIBRARY)
    # The session is that of other tests too, and its settings are left alone.
    own = config.replace('"spark.sql.shuffle.partitions" = 1', "")
    (folder / "stream.toml").write_text(own.format(folder=folder))
    with pytest.raises(SystemExit) as ended:
        main(["stream", str(folder / "rules.cor"), str(folder / "stream.toml")])
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert said.out == ""
    assert "Traceback" not in said.err
    assert not (folder / "checkpoint").exists()
    return said.err


def test_a_call_without_a_configuration_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["stream", "rules.cor"])

    assert ended.value.code == 2
    assert "needs library files and then a TOML file" in capsys.readouterr().err


def test_a_mistake_in_the_configuration_is_told_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(tmp_path, CONFIG.replace('lateness = "2 s"', 'lateness = "soon"'), capsys)

    assert "stream.toml`: `lateness` in `[stream]` is" in said


def test_a_source_that_is_not_there_is_told(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "say them as `schema` in `[source]`" in refused(tmp_path, CONFIG, capsys)


def test_text_that_is_not_there_is_told(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = CONFIG.replace('"parquet"', '"jsonl"', 1)

    assert "events` cannot be read" in refused(tmp_path, config, capsys)


def test_a_column_that_a_rule_needs_and_the_source_lacks_is_told(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pieces(tmp_path / "events", [table([]).drop_columns(["Value"])])

    said = refused(tmp_path, CONFIG, capsys)

    assert "reads events of type `Reading`, whose attribute `Value`" in said
    assert "no column for it" in said
