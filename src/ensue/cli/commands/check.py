"""`ensue check`: every error and warning of a library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from ensue.cli.deadlines import Deadline, seconds_of
from ensue.cli.libraries import LibraryFiles, OntologyFiles, load_library
from ensue.cli.terminal import EXIT_FINDINGS, counted, show, show_findings
from ensue.errors import LibraryError
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.parsing.parser import read_source
from ensue.library import Library


def check(
    libraries: LibraryFiles, deadline: Deadline = "5s", ontology: OntologyFiles = None
) -> None:
    """Check a library: every mistake in it, at once.

    Every error and warning is shown with its place, its line and what to do about it. They are the
    result of this command, so they go to the standard output.

    \b
    Example:
      ensue check rules.cor
      ensue check types.cor rules.cor
      ensue check generated.cor --deadline 1min

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
        show_findings(error.diagnostics)
        raise typer.Exit(EXIT_FINDINGS) from None
    show_findings(_with_analyses(libraries, library, seconds))
    types = counted(len(library.types), "event type")
    correlations = counted(len(library.correlations), "correlation")
    show(f"good: {types}, {correlations}", "bold green")


def _with_analyses(paths: Sequence[Path], library: Library, seconds: float) -> Sequence[Diagnostic]:
    """The warnings of the checker and those of the analyses, from top to bottom."""
    from ensue.machine.analyses.warnings import analysis_warnings

    source, _ = read_source(paths)
    files = [name for name, _ in source.files]
    found = [*library.warnings, *analysis_warnings(library.checked, source, seconds)]
    return sorted(found, key=lambda each: (files.index(each.file), each.line, each.column))
