"""`ensue mcp`: tools for assistants, over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.deadlines import seconds_of
from ensue.cli.libraries import OntologyFiles
from ensue.errors import UsageError
from ensue.events.sources import standard_input


def mcp(
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="FOLDER",
            help="A folder whose files may be read; by default the current one. Repeatable.",
        ),
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="URL",
            help="A history that may be queried besides those under the roots. Repeatable.",
        ),
    ] = None,
    ontology: OntologyFiles = None,
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="D", help="How long one call may take.")
    ] = "30s",
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, help="The most events in an answer."),
    ] = 1_000,
) -> None:
    """Tools for assistants: check, explain, compare, test and run rules, query histories.

    An assistant starts this command and speaks the Model Context Protocol with it, over the
    standard streams. No file is changed, and only files under the roots are read. The reference of
    the language and the cookbook are available as resources.

    \b
    Example:
      ensue mcp
      ensue mcp --root rules --root events --history postgresql://127.0.0.1/events

    \b
    Exit codes:
      0  the assistant has ended the session
      2  a missing root, the extra `mcp` is not installed, or a wrong call
    """
    roots = [each.resolve() for each in root or [Path()]]
    for given in roots:
        if not given.is_dir():
            raise UsageError(f"`--root`: `{given}` is no folder: give a folder with rules")
    missing = [f"`{each}`" for each in ontology or () if not each.is_file()]
    if missing:
        raise UsageError(f"`--ontology`: there is no file {', '.join(missing)}: give a file")
    seconds = seconds_of(deadline)
    try:
        from ensue.assistants.lines import LONGEST_LINE, bound_standard_input
        from ensue.assistants.reach import Reach
        from ensue.assistants.server import assistants_server
    except ModuleNotFoundError as error:
        if error.name not in ("anyio", "mcp", "pydantic"):
            raise
        raise UsageError(
            f"`ensue mcp` needs `{error.name}`, which is not installed: pip install 'ensue[mcp]'"
        ) from None
    reach = Reach(
        tuple(roots),
        tuple(history or ()),
        tuple(each.resolve() for each in ontology or ()),
        most_rows=limit,
        seconds=seconds,
    )
    standard_input()
    lines = bound_standard_input()
    server, worker = assistants_server(reach)
    try:
        server.run("stdio")
    finally:
        worker.close()
    if lines.is_cut:
        raise UsageError(f"the assistant sent a message of more than {LONGEST_LINE:,} bytes")
