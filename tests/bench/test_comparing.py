"""`benchmarks/compare.py`: what it calls a regression, and what it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def report(
    median: float = 100.0,
    spread: float = 0.02,
    yardstick: float = 1.0,
    better: str = "higher",
    unit: str = "events/s",
    **more: Any,
) -> dict[str, Any]:
    figure = {
        "name": "speed", "unit": unit, "median": median, "spread": spread, "better": better,
    }  # fmt: skip
    return {
        "format": "ensue-bench",
        "version": 1,
        "subject": "batch",
        "quick": False,
        "environment": {"yardstick_seconds": yardstick},
        "figures": [figure],
        "curves": [],
    } | more


def compare(folder: Path, old: Any, new: Any) -> subprocess.CompletedProcess[str]:
    for name, content in (("old", old), ("new", new)):
        (folder / name).write_text(json.dumps(content), "utf-8")
    script = ROOT / "benchmarks" / "compare.py"
    return subprocess.run(
        [sys.executable, str(script), str(folder / "old"), str(folder / "new")],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_report_is_no_worse_than_itself(tmp_path: Path) -> None:
    done = compare(tmp_path, report(), report())

    assert done.returncode == 0
    assert "0 of 1 are worse" in done.stdout


@pytest.mark.parametrize(("better", "median"), [("higher", 70.0), ("lower", 140.0)])
def test_a_figure_that_is_worse_beyond_noise_is_flagged(
    tmp_path: Path, better: str, median: float
) -> None:
    done = compare(tmp_path, report(better=better), report(median, better=better))

    assert done.returncode == 1
    assert "WORSE" in done.stdout
    assert "0.7" in done.stdout


def test_a_figure_that_is_worse_within_its_spread_is_not_flagged(tmp_path: Path) -> None:
    assert compare(tmp_path, report(), report(70.0, spread=0.5)).returncode == 0


def test_a_machine_that_was_slower_is_no_regression_of_a_time(tmp_path: Path) -> None:
    assert compare(tmp_path, report(), report(70.0, yardstick=1.4)).returncode == 0


def test_a_ratio_does_not_depend_on_the_machine(tmp_path: Path) -> None:
    worse = report(70.0, yardstick=1.4, unit="times")

    assert compare(tmp_path, report(unit="times"), worse).returncode == 1


def test_a_curve_that_became_steeper_is_flagged(tmp_path: Path) -> None:
    curve = {"plot": "keys-step", "name": "x", "unit": "µs/event", "points": [], "slope": 0.5}

    done = compare(tmp_path, report(curves=[curve]), report(curves=[curve | {"slope": 1.0}]))

    assert done.returncode == 1
    assert "slope 1.00" in done.stdout


def test_reports_of_two_subjects_are_not_compared(tmp_path: Path) -> None:
    done = compare(tmp_path, report(), report(subject="machine"))

    assert done.returncode == 2
    assert "differ in `subject`" in done.stderr


def test_the_reports_that_are_kept_can_be_compared() -> None:
    kept = sorted((ROOT / "benchmarks" / "record").glob("*.json"))
    script = ROOT / "benchmarks" / "compare.py"

    assert kept
    for path in kept:
        done = subprocess.run([sys.executable, script, path, path], check=False)
        assert done.returncode == 0
