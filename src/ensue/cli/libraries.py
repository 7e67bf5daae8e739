"""Arguments and options that several commands share, and the loading of libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.terminal import counted, listed, say
from ensue.engine.choosing import ENGINES
from ensue.errors import LibraryError, UsageError
from ensue.lang.diagnostics import Diagnostic, did_you_mean
from ensue.library import Library, load

if TYPE_CHECKING:
    from ensue.knowledge import Ontology

NEEDS_HISTORY = "needs-history"
"""The code of the warning that a predicate needs a history."""

LibraryFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="LIB",
        help="Library files (*.cor), or folders of them. All form one library.",
        show_default=False,
    ),
]

OntologyFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--ontology",
        metavar="FILE",
        help="An ontology for predicates (.ttl, .rdf, .owl, .nt). Several files form one.",
    ),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="The value of a parameter of the library, as --set limit=10 --set pause='5 min'.",
    ),
]

ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMN,...",
        help="Which column or path holds what, as time=ts:ms,type=kind,user=actor.name. A unit"
        " (s, ms, us, ns) is for times that are numbers, a pattern for times that are text, also of"
        " several columns, as 'time=Date+Time:%y%m%d %H%M%S'. The option can be repeated.",
    ),
]

TypeOption = Annotated[
    str | None,
    typer.Option("--type", metavar="NAME", help="The type of events that name no type."),
]

TimezoneOption = Annotated[
    str | None,
    typer.Option(
        "--timezone", metavar="ZONE", help="The time zone of times without an offset, as UTC."
    ),
]

YearOption = Annotated[
    int | None,
    typer.Option(
        "--year",
        metavar="YEAR",
        help="The year of times whose pattern has none, at the beginning of each file.",
    ),
]

NullOption = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="A text of CSV that stands for no value, as NA. The option can be repeated.",
    ),
]

EngineName = Annotated[
    str, typer.Option("--engine", metavar="NAME", help=f"{', '.join(['auto', *ENGINES])}.")
]


def load_library(
    paths: Sequence[Path],
    ontology: Sequence[Path] | None = None,
    settings: Sequence[str] | None = None,
) -> Library:
    """Load a library, with the values of `--set`.

    Raises `UsageError` for missing files and values that do not fit, and `LibraryError` for
    mistakes.
    """
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise UsageError(f"there is no file {listed(missing)}: give the path of a library (*.cor)")
    parameters, known = given_parameters(settings), load_ontology(ontology)
    with pointing_at(parameters, partial(load, *paths, ontology=known)):
        return load(*paths, ontology=known, parameters=parameters)


@contextmanager
def pointing_at(
    parameters: Mapping[str, object], load_without: Callable[[], object]
) -> Iterator[None]:
    """A block whose mistakes name the values of `--set` that make them mistakes.

    Those are mistakes that are not there without any values.
    """
    try:
        yield
    except LibraryError as error:
        if not parameters:
            raise
        before: set[tuple[object, ...]] = set()
        try:
            load_without()
        except LibraryError as other:
            before = {_identity(each) for each in other.diagnostics}
        found = [
            each if _identity(each) in before else _given_to(each, parameters)
            for each in error.diagnostics
        ]
        raise LibraryError(found) from None


def _identity(found: Diagnostic) -> tuple[object, ...]:
    return found.code, found.file, found.line, found.column, found.severity


def _given_to(found: Diagnostic, parameters: Mapping[str, object]) -> Diagnostic:
    place = found if found.inside is None else found.inside
    written = place.text[place.column - 1 : place.column - 1 + place.width]
    named = [name for name in parameters if re.search(rf"\b{re.escape(name)}\b", written)]
    shown = [f"--set {name}={parameters[name]}" for name in named or parameters]
    return replace(found, given=tuple(shown))


def given_parameters(settings: Sequence[str] | None) -> dict[str, str]:
    """The values that `--set` gives, by the names of parameters. Raises `UsageError`."""
    found: dict[str, str] = {}
    for each in settings or ():
        name, sign, value = each.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"`--set {each}` sets nothing: write `--set NAME=VALUE`")
        if name.strip() in found:
            raise UsageError(f"`--set` gives `{name.strip()}` twice: leave one of them out")
        found[name.strip()] = value
    return found


def load_ontology(files: Sequence[Path] | None) -> Ontology | None:
    """The ontology of all files, if there are any. Raises `UsageError` if one cannot be read."""
    if not files:
        return None
    # rdflib takes a while to import, and few libraries use an ontology.
    from ensue.knowledge import Ontology

    return Ontology.load(*files)


def mention_warnings(library: Library, paths: Sequence[Path], but: str | None = None) -> None:
    """Say in one line that a library has warnings, and which command shows them.

    Warnings with the code `but` are not counted.
    """
    if not library.correlations.names:
        files = " ".join(str(path) for path in paths)
        say(f"`{files}` has no correlation, so there can be no output", "yellow")
    if warnings := [each for each in library.warnings if each.code != but]:
        files = " ".join(str(path) for path in paths)
        number = counted(len(warnings), "warning")
        say(f"{number} about the library; `ensue check {files}` shows more", "yellow")


def require_correlation(library: Library, name: str) -> None:
    """Raise `UsageError`, with the closest names, if the library has no such correlation."""
    if name not in library.correlations.names:
        hint = did_you_mean(name, library.correlations.names)
        raise UsageError(f"there is no correlation `{name}` in the library; {hint}")


def require_outputs(library: Library, name: str) -> None:
    """Raise `UsageError` if the library has no such correlation, or none that puts anything out."""
    require_correlation(library, name)
    if library.correlations[name].role == "internal":
        raise UsageError(
            f"`{name}` is internal, and what it puts out goes nowhere: name a rule that reads it,"
            " or leave out `internal`"
        )
