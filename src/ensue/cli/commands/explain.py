"""`ensue explain`: what a correlation waits for and what it does then, for people.

The sections are written by `ensue.explaining`; here they meet the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.libraries import OntologyFiles, load_library, require_correlation
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
            help="Library files (*.cor), then a correlation of theirs; the only one needs no name.",
            show_default=False,
        ),
    ],
    format: Annotated[  # noqa: A002 - the name that users know
        str,
        typer.Option(metavar="FORMAT", help="How to show it: text, json, mermaid, dot or svg."),
    ] = "text",
    unoptimised: Annotated[
        bool, typer.Option("--unoptimised", help="Show the machine as it is first built.")
    ] = False,
    placement: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show which site runs what, over the sites of a file."),
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "--events", "-e", metavar="FILE", help="With --placement: count what crosses links."
        ),
    ] = None,
    ontology: OntologyFiles = None,
) -> None:
    """Explain a correlation in words, or draw its machine.

    What it waits for, in a sentence and as an outline; its ports, clauses and labels; what it puts
    out and when; which correlations feed it, and which it feeds; how each engine runs it, and why;
    what the passes have left of its machine. The other formats draw that machine.

    With --placement: where each correlation runs if its events arise at several sites, what travels
    there, and why it does not split; with events, also how many messages cross the links.

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
        raise UsageError(f"there is no format `{format}`; there is {_listed(FORMATS)}")
    if placement is not None:
        if format not in ("text", "json"):
            raise UsageError(f"a placement is no `{format}`: it is shown as `text` or `json`")
        library, asked = _library_and_some_name(arguments, ontology)
        explain_placement(library, placement, asked, events or [], format == "json")
        return
    if events:
        raise UsageError("`--events` counts what crosses links: give `--placement` with it")
    library, name = _library_and_name(arguments, ontology)
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
    """Whether it can be no correlation: then it is a library that is missing, or no file."""
    return not argument.isidentifier() or Path(argument).exists()


def _library_and_name(
    arguments: Sequence[str], ontology: Sequence[Path] | None
) -> tuple[Library, str]:
    """The library of all files, and the correlation: the last argument, or the only one there."""
    *files, last = arguments
    if not Path(last).is_file() and (files or not _is_a_path(last)):
        if not files:
            raise UsageError(f"name the library first: `ensue explain LIB {last}`")
        return load_library([Path(file) for file in files], ontology), last
    library = load_library([Path(file) for file in arguments], ontology)
    names = list(library.correlations.names)
    if len(names) != 1:
        known = f"there is {_listed(names)}" if names else "but there is none in it"
        raise UsageError(f"name a correlation of {_listed(arguments)}; {known}")
    return library, names[0]


def _library_and_some_name(
    arguments: Sequence[str], ontology: Sequence[Path] | None
) -> tuple[Library, str | None]:
    """The library of all files, and a correlation of it where the last argument is one."""
    *files, last = arguments
    if not Path(last).is_file() and files and not _is_a_path(last):
        library = load_library([Path(file) for file in files], ontology)
        require_correlation(library, last)
        return library, last
    return load_library([Path(file) for file in arguments], ontology), None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
