"""`ensue check`: every error and warning of a library."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.deadlines import Deadline, seconds_of
from ensue.cli.libraries import LibraryFiles, OntologyFiles, load_library
from ensue.cli.terminal import EXIT_FINDINGS, counted, say, show, show_findings
from ensue.errors import LibraryError, LimitError
from ensue.lang.derived.relating import relates_events
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.parsing.parser import read_source
from ensue.library import Library

COSTS_SHOWN = 10
"""The most rules whose costs are told without `--costs`."""

REFUSED_HERE = frozenset({"ecl-output-data"})
"""Codes of warnings that are errors to this command. A library with one of them still runs: its
outputs come at the right moments, and only lack data."""


def check(
    libraries: LibraryFiles,
    deadline: Deadline = "5s",
    ontology: OntologyFiles = None,
    costs: Annotated[
        bool, typer.Option("--costs", help="Say of every rule what a key costs at most.")
    ] = False,
) -> None:
    """Check a library: every mistake in it, at once.

    Every error and warning is shown with its place, its line and what to do about it. They are the
    result of this command, so they go to the standard output. Of rules that relate several events
    it also says what they keep for each key, and how many bytes that takes at most.

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
        library = load_library(libraries, ontology)
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
        say("there is no correlation in it yet, so that nothing can be put out", "yellow")
    for line in _costs(library, all_of_them=costs):
        show(line)


def _judged(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings, in which what `REFUSED_HERE` names is an error."""
    return [
        dataclasses.replace(each, severity="error") if each.code in REFUSED_HERE else each
        for each in findings
    ]


def _costs(library: Library, *, all_of_them: bool) -> Iterator[str]:
    """What keys cost: of rules that relate events, or of all."""
    from ensue.engine.costs import cost_of

    told = [each for each in library.correlations if all_of_them or relates_events(each)]
    shown = told if all_of_them else told[:COSTS_SHOWN]
    for correlation in shown:
        try:
            yield str(cost_of(library.checked, correlation))
        except LimitError as error:
            yield f"`{correlation.name}` cannot run: {error}"
    if len(shown) < len(told):
        yield f"and {len(told) - len(shown):,} more rules: `--costs` shows what they keep"


def _with_analyses(paths: Sequence[Path], library: Library, seconds: float) -> Sequence[Diagnostic]:
    """The warnings of the checker and those of the analyses, from top to bottom."""
    from ensue.machine.analyses.warnings import analysis_warnings

    source, _ = read_source(paths)
    files = [name for name, _ in source.files]
    found = [*library.warnings, *analysis_warnings(library.checked, source, seconds)]
    return sorted(found, key=lambda each: (files.index(each.file), each.line, each.column))
