"""Logs as their programs write them, on Spark: the outputs are those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from ensue.cli import app
from tests.cli.commands.run.test_published_logs import LINES, READINGS, SPACE


def run(*arguments: Any) -> list[str]:
    answer = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert answer.exit_code == 0, answer.output
    return answer.stdout.splitlines()


@pytest.mark.parametrize("name", READINGS)
def test_a_published_log_is_read_as_in_one_process(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    text, options, times = READINGS[name]
    (tmp_path / "lines.cor").write_text(LINES)
    # Two files of one name are told apart in ids.
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text + "what is no line of the log\n")
    asked = [tmp_path / "lines.cor", "-e", tmp_path / "a", "-e", tmp_path / "b", *SPACE, *options]

    here = run(*asked)

    assert len(here) == 2 * len(times)
    assert run(*asked, "--engine", "spark") == here
