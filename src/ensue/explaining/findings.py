"""Everything that is to be said about the text of a library: mistakes, warnings, analyses.

In comes a `Source`; out come the diagnostics from top to bottom, and the library if there is no
error. The analyses of machines run only over a library without errors, up to a deadline.
"""

from __future__ import annotations

from dataclasses import dataclass

from ensue.engine.changing import checked_source
from ensue.errors import LibraryError
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.expressions.binding import BindingOntology
from ensue.lang.source import Source
from ensue.library import Library
from ensue.machine.analyses.warnings import analysis_warnings


@dataclass(frozen=True, slots=True)
class Findings:
    """`library` is None where there is an error."""

    diagnostics: tuple[Diagnostic, ...]
    library: Library | None


def quick_findings(source: Source, ontology: BindingOntology | None = None) -> Findings:
    """Mistakes and the warnings of the checker, without analyses."""
    try:
        library = Library(checked_source(source, ontology))
    except LibraryError as error:
        return Findings(tuple(error.diagnostics), None)
    return Findings(library.warnings, library)


def all_findings(
    source: Source, seconds: float, ontology: BindingOntology | None = None
) -> Findings:
    """Mistakes, warnings, and what the analyses have found before their deadline."""
    quick = quick_findings(source, ontology)
    if quick.library is None:
        return quick
    files = [name for name, _ in source.files]
    found = [*quick.diagnostics, *analysis_warnings(quick.library.checked, source, seconds)]
    found.sort(key=lambda each: (files.index(each.file), each.line, each.column))
    return Findings(tuple(found), quick.library)
