"""`ensue check`: every error and warning of a library."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.deadlines import Deadline, seconds_of
from ensue.cli.libraries import LibraryFiles, OntologyFiles, SetOption, load_library
from ensue.cli.terminal import EXIT_FINDINGS, counted, say, show, show_findings
from ensue.errors import LibraryError, LimitError
from ensue.lang.derived.relating import relates_events
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.parsing.parser import read_source
from ensue.library import Library

COSTS_SHOWN = 10
"""The most rules whose costs are shown without `--costs`."""

REFUSED_HERE = frozenset({"ecl-output-data"})
"""Codes of warnings that this command reports as errors. A library with such a warning still runs:
its outputs come at the right moments, but lack data."""


def check(
    libraries: LibraryFiles,
    deadline: Deadline = "5s",
    ontology: OntologyFiles = None,
    settings: SetOption = None,
    costs: Annotated[
        bool,
        typer.Option("--costs", help="Show the costs of a key, in bytes and time, for every rule."),
    ] = False,
) -> None:
    """Check a library, and report all mistakes at once.

    Every error and warning is shown with its place, its line and what to do about it, on the
    standard output. For rules that relate several events, the command also shows what they keep for
    each key, and how many bytes that takes at most.

    \b
    Example:
      ensue check rules.cor
      ensue check types.cor rules.cor
      ensue check generated.cor --deadline 1min
      ensue check rules.cor --costs

    \b
    Exit codes:
      0  good; warnings alone are good
      1  there is an error
      2  a file cannot be read, or a wrong call
    """
    seconds = seconds_of(deadline)
    try:
        library = load_library(libraries, ontology, settings)
    except LibraryError as error:
        show_findings(_judged(error.diagnostics))
        raise typer.Exit(EXIT_FINDINGS) from None
    findings = _judged(_with_analyses(libraries, library, seconds))
    show_findings(findings)
    if any(each.severity == "error" for each in findings):
        raise typer.Exit(EXIT_FINDINGS)
    types = counted(len(library.types), "event type")
    correlations = counted(len(library.correlations), "correlation")
    show(f"good: {types}, {correlations}", "bold green")
    if not library.correlations.names:
        say("the library has no correlation yet, so there can be no output", "yellow")
    for line in _costs(library, all_of_them=costs):
        show(line)


def _judged(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings, with warnings of `REFUSED_HERE` as errors."""
    return [
        dataclasses.replace(each, severity="error") if each.code in REFUSED_HERE else each
        for each in findings
    ]


def _costs(library: Library, *, all_of_them: bool) -> Iterator[str]:
    """The costs of a key, for rules that relate several events or for all rules."""
    from ensue.engine.costs import cost_of

    chosen = [each for each in library.correlations if all_of_them or relates_events(each)]
    shown = chosen if all_of_them else chosen[:COSTS_SHOWN]
    for correlation in shown:
        try:
            cost = cost_of(library.checked, correlation)
            yield str(cost)
            if all_of_them or cost.is_dear:
                yield cost.time
        except LimitError as error:
            yield f"`{correlation.name}` cannot run: {error}"
    if len(shown) < len(chosen):
        yield f"and {len(chosen) - len(shown):,} more rules: `--costs` shows what they keep"


def _with_analyses(paths: Sequence[Path], library: Library, seconds: float) -> Sequence[Diagnostic]:
    """The warnings of the checker and of the analyses, in the order of the files."""
    # The analyses take a while to import, and a library with errors does not need them.
    from ensue.explaining.findings import with_analyses

    source, _ = read_source(paths)
    return with_analyses(library, source, seconds)
