"""`ensue bench`: measure Ensue on this machine; a table for people, JSON for comparing."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.terminal import console, say, show
from ensue.errors import UsageError
from ensue.events.files.output.whole_file import WholeFile
from ensue_bench import SUBJECTS

if TYPE_CHECKING:
    from ensue_bench.report import Finding, Report

STYLES = (("missed", "yellow"), ("met", "green"))


def bench(
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help=f"What to measure: {', '.join(SUBJECTS)}."),
    ],
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Save the figures as JSON.")
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", metavar="DIR", help="Draw the curves as SVG into a folder."),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="How often each task is measured.")
    ] = 7,
    stores: Annotated[
        str,
        typer.Option(
            "--stores",
            metavar="A,B",
            help="For history: compare stores (memory, sqlite, parquet, postgresql, mysql, or"
            " addresses of histories); servers are started.",
        ),
    ] = "",
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Tiny sizes, to see that it runs; the figures mean nothing."),
    ] = False,
) -> None:
    """Measure Ensue on this machine, beside Esper, Flink and the paper of the channel.

    A figure is the median of several repeats, in processor time of one thread (for Spark and the
    channel, in wall-clock time); its spread is half the interquartile range. Things that are
    compared are measured in turns, in one run.

    \b
    Example:
      ensue bench batch --json batch.json

    \b
    Exit codes:
      0  measured, whether the aims are met or not
      2  no such benchmark, or one that cannot run here
    """
    from ensue_bench.effort import Effort
    from ensue_bench.measuring import check_subject, measure

    check_subject(what)
    compared = tuple(each.strip() for each in stores.split(",") if each.strip())
    if compared and what != "history":
        raise UsageError("`--stores` is for `ensue bench history`")
    if json is not None:
        # Fails now rather than after minutes of measuring.
        json.open("a", encoding="utf-8").close()
    # SIGTERM, like Ctrl-C, shows and saves the figures that were measured by then.
    with suppress(ValueError):
        # Only the main thread can set handlers.
        signal.signal(signal.SIGTERM, signal.default_int_handler)

    def told(finding: Finding, so_far: Report) -> None:
        _tell(finding)
        if json is not None:
            # A process that is killed leaves the figures that it has measured.
            _save(so_far, json)

    report = measure(what, Effort(quick, repeats, compared), told)
    _show(report)
    if report.environment.get("interrupted"):
        say("interrupted: the figures that were not measured yet are missing", "yellow")
    if json is not None:
        _save(report, json)
    if plots is not None:
        _draw(report, plots)


def _save(report: Report, path: Path) -> None:
    with WholeFile(path) as written:
        written.file.write(report.as_json().encode("utf-8"))


def _tell(finding: Finding) -> None:
    """One line a finding while it runs, at a terminal."""
    if sys.stderr.isatty():
        say(f"measured {finding.name}", "dim")


def _show(report: Report) -> None:
    """The table; at a terminal with colour where an aim is met or missed."""
    from ensue_bench.tables import tables_of

    for line in tables_of(report):
        style = next((style for word, style in STYLES if line.endswith(f" {word}")), "")
        if style and sys.stdout.isatty():
            console(False).print(line, style=style)
        else:
            show(line)
    load = report.environment["load_average"]
    cores = report.environment["cores"]
    if load is not None and cores and load[0] > cores:
        say(f"note: other processes are busy (load {load[0]} on {cores} cores)", "yellow")


def _draw(report: Report, folder: Path) -> None:
    from ensue_bench.plot import draw

    folder.mkdir(parents=True, exist_ok=True)
    for picture in report.pictures:
        (folder / f"{picture.name}.svg").write_text(picture.svg, "utf-8")
    for plot in dict.fromkeys(each.plot for each in report.curves):
        curves = [each for each in report.curves if each.plot == plot]
        subject, _, engine = plot.rpartition("-")
        title = curves[0].title or f"Cost of an event against {subject}, {engine} engine"
        (folder / f"{plot}.svg").write_text(draw(curves, title), "utf-8")
