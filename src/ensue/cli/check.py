"""`ensue check`: every error and warning of a library."""

from __future__ import annotations

import typer

from ensue.cli.libraries import LibraryFiles, load_library
from ensue.cli.terminal import EXIT_FINDINGS, counted, show, show_findings
from ensue.errors import LibraryError


def check(libraries: LibraryFiles) -> None:
    """Check a library: every mistake in it, at once.

    Every error and warning is shown with its place, its line and what to do about it. They are the
    result of this command, so they go to the standard output.

    \b
    Example:
      ensue check rules.cor
      ensue check types.cor rules.cor

    \b
    Exit codes:
      0  good; warnings alone are good
      1  there is an error
      2  a file cannot be read, or a wrong call
    """
    try:
        library = load_library(libraries)
    except LibraryError as error:
        show_findings(error.diagnostics)
        raise typer.Exit(EXIT_FINDINGS) from None
    show_findings(library.warnings)
    types = counted(len(library.types), "event type")
    correlations = counted(len(library.correlations), "correlation")
    show(f"good: {types}, {correlations}", "bold green")
