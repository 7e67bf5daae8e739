"""`ensue bench channel` at tiny sizes: it runs, and has every table of the paper."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ensue.cli import app
from ensue_bench.channel import paper as paper
from ensue_bench.channel.pace import LONG, Pauses

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a quick run has written: its table, its report, and where."""
    folder = tmp_path_factory.mktemp("bench")
    file = folder / "channel.json"
    arguments = ["bench", "channel", "--quick", "--repeats", "1", "--json", str(file)]
    result = CliRunner().invoke(app, [*arguments, "--plots", str(folder)], prog_name="ensue")
    assert result.exit_code == 0, result.output
    return result.stdout, json.loads(file.read_text("utf-8")), folder


def test_every_table_of_the_paper_is_there(measured: Any) -> None:
    """Every table is measured once, by threads that wait for each other."""
    shown, report, _ = measured
    names = [each["name"].split(":")[0] for each in report["tables"]]

    assert names == [
        "Collocated, reactive",
        "Collocated, pool",
        "Two processes",
        "Laxity, single channel",
        "Laxity, federated",
        "Spacing",
    ]
    assert all(name in shown for name in names)


def test_the_papers_figures_stand_beside_ours(measured: Any) -> None:
    _, report, _ = measured
    row = report["tables"][0]["rows"][0]
    least, _, average = paper.COLLOCATED[1, 1][0]

    assert row[:3] == ["1", "1", "first"]
    assert row[3].endswith(f" ({least})")
    assert row[4].endswith(f" ({average})")


def test_the_tables_fit_a_terminal(measured: Any) -> None:
    shown, _, _ = measured

    assert max(len(line) for line in shown.splitlines()) <= 80


def test_the_plot_of_laxity_is_drawn(measured: Any) -> None:
    _, _, folder = measured
    drawn = (folder / "laxity-channel.svg").read_text("utf-8")

    assert drawn.startswith("<svg")
    assert all(name in drawn for name in ("single channel", "federated"))


def test_two_reports_can_be_compared(measured: Any) -> None:
    _, _, folder = measured
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "compare.py"), *["channel.json"] * 2],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "0 of" in done.stdout


def test_pauses_in_the_waits_of_suppliers_say_how_many_events_to_expect_them_in() -> None:
    pauses = Pauses()
    pauses.waited, pauses.long = 1_000_000, 50
    pauses.compare([1_000] * 40 + [3 * LONG])

    # Under way for 40 and 10 of the 1,000 µs in which 50 pauses were seen.
    assert (pauses.struck, pauses.expected) == (1, 2.5)


def test_a_wait_lasts_until_its_time_and_is_counted() -> None:
    pauses, begin = Pauses(), time.perf_counter_ns()
    pauses.wait_until(begin + 200_000)

    assert time.perf_counter_ns() >= begin + 200_000
    assert pauses.waited > 0
