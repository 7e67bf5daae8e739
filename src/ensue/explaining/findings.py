"""All findings about the text of a library: mistakes, warnings, and warnings of the analyses.

In comes a `Source`; out come the diagnostics in the order of the text, and the library if there is
no error. The analyses of machines run only over a library without errors, up to a deadline.
"""

from __future__ import annotations

from dataclasses import dataclass

from ensue.engine.changing import checked_source
from ensue.errors import LibraryError
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.expanding.parameters import GivenValues
from ensue.lang.expressions.binding import BindingOntology
from ensue.lang.source import Source
from ensue.library import Library
from ensue.machine.analyses.warnings import analysis_warnings


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings about a text. `library` is None if there is an error."""

    diagnostics: tuple[Diagnostic, ...]
    library: Library | None


def quick_findings(
    source: Source,
    ontology: BindingOntology | None = None,
    parameters: GivenValues | None = None,
) -> Findings:
    """Mistakes and the warnings of the checker, without analyses.

    Raises `UsageError` for values of parameters that do not fit.
    """
    try:
        library = Library(checked_source(source, ontology, parameters))
    except LibraryError as error:
        return Findings(tuple(error.diagnostics), None)
    return Findings(library.warnings, library)


def all_findings(
    source: Source,
    seconds: float,
    ontology: BindingOntology | None = None,
    parameters: GivenValues | None = None,
) -> Findings:
    """Mistakes, warnings, and the warnings that the analyses find before their deadline."""
    quick = quick_findings(source, ontology, parameters)
    if quick.library is None:
        return quick
    return Findings(with_analyses(quick.library, source, seconds), quick.library)


def with_analyses(library: Library, source: Source, seconds: float) -> tuple[Diagnostic, ...]:
    """The warnings of the checker and of the analyses, in the order of the text."""
    files = [name for name, _ in source.files]
    found = [*library.warnings, *analysis_warnings(library.checked, source, seconds)]
    return tuple(sorted(found, key=lambda each: (files.index(each.file), each.line, each.column)))
