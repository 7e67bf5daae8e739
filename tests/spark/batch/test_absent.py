"""What a run on Spark says of rules that put nothing out: as in one process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from ensue.cli import app
from tests.cli.commands.run.test_absent import RULES


@pytest.mark.parametrize("out", [None, "found.csv", "found.parquet"])
def test_a_rule_without_outputs_names_the_attributes_that_no_event_had(
    spark: SparkSession, tmp_path: Path, out: str | None
) -> None:
    """The first test of its lane pays for the start of Spark."""
    (tmp_path / "logons.cor").write_text(RULES)
    log = tmp_path / "log.jsonl"
    rows = [
        {"at": n, "EventID": 4624, "TargetUserName": "ann", "host": {"name": "x"}} for n in (1, 2)
    ]
    log.write_text("".join(json.dumps(each) + "\n" for each in rows))
    call = ["run", tmp_path / "logons.cor", "-e", log, "--columns", "time=at:ms,type=EventID"]
    call += [] if out is None else ["--out", tmp_path / out]

    answer = CliRunner().invoke(app, [*map(str, call), "--engine", "spark"])

    assert answer.exit_code == 0, answer.output
    said = answer.stderr.splitlines()
    close = "did you mean `TargetUserName`?"
    assert f"no event had `TargetUsername`, which `Twice` reads; {close}" in said
    # The other rule has put something out.
    assert len([each for each in said if each.startswith("no event had")]) == 1
    assert any("2 of 2 events lie in 1970, since `time` is read in `ms`" in each for each in said)
