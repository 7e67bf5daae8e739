"""Measurements at tiny sizes: they run, and what they report is whole."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ensue.cli import app
from ensue.errors import UsageError
from ensue_bench import SUBJECTS
from ensue_bench.effort import Effort
from ensue_bench.report import Figure, rate


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], prog_name="ensue")


@pytest.fixture(scope="module", params=["machine", "batch", "curves", "subscriptions"])
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a quick run has written: its subject, table, report and pictures."""
    folder = tmp_path_factory.mktemp("bench")
    file = folder / "report.json"
    result = call(request.param, "--quick", "--repeats", 1, "--json", file, "--plots", folder)
    assert result.exit_code == 0, result.output
    return request.param, result.stdout, json.loads(file.read_text("utf-8")), folder


def test_a_report_says_what_was_measured_and_where(measured: Any) -> None:
    """Every figure of a subject is measured once: seconds, and more where loops are compiled."""
    subject, _, report, _ = measured

    assert (report["format"], report["version"], report["subject"]) == ("ensue-bench", 1, subject)
    assert report["quick"] is True
    assert {"python", "packages", "cores", "commit", "load_average", "yardstick_seconds"} <= {
        *report["environment"]
    }


def test_every_figure_has_a_unit_a_median_a_spread_and_its_repeats(measured: Any) -> None:
    _, _, report, _ = measured

    assert report["figures"] or report["curves"]
    for figure in report["figures"]:
        assert figure["median"] > 0
        assert figure["unit"]
        assert figure["repeats"] == len(figure["values"]) >= 1
        assert figure["spread"] >= 0
    for curve in report["curves"]:
        assert len(curve["points"]) == 2
        assert all(point["median"] > 0 for point in curve["points"])


def test_names_of_figures_are_unique(measured: Any) -> None:
    """Reports are compared by them."""
    _, _, report, _ = measured
    names = [each["name"] for each in report["figures"]]
    names += [f"{each['plot']} {each['name']}" for each in report["curves"]]

    assert sorted(set(names)) == sorted(names)


def test_a_quick_run_judges_no_aim(measured: Any) -> None:
    _, _, report, _ = measured

    assert all(each["met"] is None for each in report["figures"])


def test_the_table_fits_a_terminal(measured: Any) -> None:
    _, table, _, _ = measured

    assert max(len(line) for line in table.splitlines()) <= 80


def test_every_plot_is_drawn(measured: Any) -> None:
    _, _, report, folder = measured
    plots = {each["plot"] for each in report["curves"]}

    assert {path.stem for path in Path(folder).glob("*.svg")} == plots


def test_an_unknown_benchmark_is_answered_with_those_there_are() -> None:
    result = call("speed")

    assert result.exit_code == 2
    assert all(f"`{name}`" in result.stderr for name in SUBJECTS)


def test_without_java_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    result = call("esper", "--quick")

    assert result.exit_code == 2
    assert "there is no `java`, `javac`, `mvn`" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_was_measured_before_an_interrupt_is_shown_and_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(effort: Effort) -> Iterator[Figure]:
        yield rate("first", [1.0, 2.0, 3.0])
        raise KeyboardInterrupt

    monkeypatch.setattr("ensue_bench.subjects.batch.measure", interrupted)
    saved = tmp_path / "batch.json"

    answer = CliRunner().invoke(app, ["bench", "batch", "--json", str(saved)])

    assert answer.exit_code == 0
    assert "interrupted" in answer.stderr
    assert [each["name"] for each in json.loads(saved.read_text())["figures"]] == ["first"]


def test_what_was_measured_so_far_is_saved_at_every_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saved = tmp_path / "batch.json"
    found = []

    def measuring(effort: Effort) -> Iterator[Figure]:
        yield rate("first", [1.0])
        found.append(json.loads(saved.read_text()))
        yield rate("second", [1.0])

    monkeypatch.setattr("ensue_bench.subjects.batch.measure", measuring)

    call("batch", "--json", saved)

    (before,) = found
    assert [each["name"] for each in before["figures"]] == ["first"]
    assert before["environment"]["interrupted"] is True
    assert "interrupted" not in json.loads(saved.read_text())["environment"]


def test_histories_are_compared_over_the_stores_that_are_named(tmp_path: Path) -> None:
    result = call(
        "history", "--stores", "memory,sqlite", "--quick", "--plots", tmp_path, "--repeats", 1
    )

    assert result.exit_code == 0, result.output
    for plot in ("history-stores-publication", "history-stores-filter"):
        assert plot in result.stdout
        drawn = (tmp_path / f"{plot}.svg").read_text("utf-8")
        assert "50 subscribers, by the store" in drawn
        assert ">memory<" in drawn
        assert ">sqlite<" in drawn


def test_a_store_that_there_is_not_is_refused_before_anything_is_measured() -> None:
    result = call("history", "--stores", "memory,oracle", "--quick")

    assert result.exit_code == 2
    assert "there is no store `oracle`; give some of `memory`, `sqlite`" in result.stderr
    assert call("batch", "--stores", "memory", "--quick").exit_code == 2


def test_without_a_checkout_the_command_says_where_the_measurements_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in an installed package, which they are no part of."""
    for name in [each for each in sys.modules if each.partition(".")[0] == "ensue_bench"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "ensue.cli.commands.bench", raising=False)
    monkeypatch.setitem(sys.modules, "ensue_bench", None)

    with pytest.raises(UsageError, match="`benchmarks/` of its source"):
        import_module("ensue.cli.commands.bench")
