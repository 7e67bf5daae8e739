"""`ensue explain`: a correlation in words, as a drawing, or placed over several sites.

`ensue.explaining` writes the sections; this module prints them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.libraries import OntologyFiles, SetOption, load_library, require_correlation
from ensue.cli.placements import explain_placement
from ensue.cli.terminal import listed, say, show, width
from ensue.errors import UsageError
from ensue.explaining.explanation import (
    FORMATS,
    Page,
    drawing,
    explanation,
    left_out_of_drawings,
)
from ensue.library import Library


def explain(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="LIB... [NAME]",
            help="Library files (*.cor), then a correlation; without a name, the only one.",
            show_default=False,
        ),
    ],
    format: Annotated[  # noqa: A002 - the name that users know
        str,
        typer.Option(metavar="FORMAT", help="How to show it: text, json, mermaid, dot or svg."),
    ] = "text",
    unoptimised: Annotated[
        bool, typer.Option("--unoptimised", help="Show the machine before optimisation.")
    ] = False,
    placement: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Show which site runs which rule, for the sites of a file."
        ),
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--events",
            "-e",
            metavar="FILE",
            help="With --placement: count the messages over links.",
        ),
    ] = None,
    ontology: OntologyFiles = None,
    settings: SetOption = None,
) -> None:
    """Explain a correlation in words, or draw its machine.

    The text says what it waits for, in a sentence and as an outline; its ports, clauses and labels;
    its outputs; which correlations feed it, and which it feeds; how each engine runs it, and why;
    and the size of its machine after optimisation. The other formats draw that machine.

    With --placement: where each correlation runs if its events come from several sites, which
    events travel, and why it does not split; with --events, also how many messages cross the links.

    \b
    Example:
      ensue explain rules.cor DoubleMatch
      ensue explain types.cor rules.cor DoubleMatch
      ensue explain rules.cor DoubleMatch --format svg > machine.svg
      ensue explain rules.cor --placement sites.toml --events log.jsonl

    \b
    Exit codes:
      0  good
      2  a library with errors, an unknown name, or a wrong call
    """
    if format not in FORMATS:
        raise UsageError(f"there is no format `{format}`; choose one of {_listed(FORMATS)}")
    if placement is not None:
        if format not in ("text", "json"):
            raise UsageError(
                f"a placement cannot be shown as `{format}`: choose the format `text` or `json`"
            )
        library, asked = _library_and_some_name(arguments, ontology, settings)
        explain_placement(library, placement, asked, events or [], format == "json")
        return
    if events:
        raise UsageError("`--events` is allowed only with `--placement`: give both, or neither")
    library, name = _library_and_name(arguments, ontology, settings)
    require_correlation(library, name)
    if format != "text":
        sys.stdout.write(drawing(library, library.correlations[name], format, unoptimised))
        if left_out := left_out_of_drawings(library.correlations[name]):
            say(f"`{name}` is drawn by its filter alone, without {listed(left_out, 9)}", "yellow")
        return
    page = Page(width(), (sys.stdout.encoding or "").lower().startswith("utf"))
    for line in explanation(library, library.correlations[name], unoptimised, page):
        show(line, "bold" if line and not line[0].isspace() else "")


def _is_a_path(argument: str) -> bool:
    """Whether an argument cannot be the name of a correlation."""
    return not argument.isidentifier() or Path(argument).exists()


def _library_and_name(
    arguments: Sequence[str], ontology: Sequence[Path] | None, settings: Sequence[str] | None
) -> tuple[Library, str]:
    """The library of all files, and the correlation: the last argument, or the only correlation."""
    *files, last = arguments
    if not Path(last).is_file() and (files or not _is_a_path(last)):
        if not files:
            raise UsageError(f"give a library first: `ensue explain LIB {last}`")
        return load_library([Path(file) for file in files], ontology, settings), last
    library = load_library([Path(file) for file in arguments], ontology, settings)
    names = list(library.correlations.names)
    if len(names) != 1:
        known = f"it has {_listed(names)}" if names else "it has none"
        raise UsageError(f"give the name of a correlation of {_listed(arguments)}; {known}")
    return library, names[0]


def _library_and_some_name(
    arguments: Sequence[str], ontology: Sequence[Path] | None, settings: Sequence[str] | None
) -> tuple[Library, str | None]:
    """The library of all files, and its correlation if the last argument names one."""
    *files, last = arguments
    if not Path(last).is_file() and files and not _is_a_path(last):
        library = load_library([Path(file) for file in files], ontology, settings)
        require_correlation(library, last)
        return library, last
    return load_library([Path(file) for file in arguments], ontology, settings), None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
