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
            help="A folder whose files may be read (the current one by default). Repeatable.",
        ),
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            "--history",
            metavar="URL",
            help="A history that may be asked beside files under the roots, as postgresql://...",
        ),
    ] = None,
    ontology: OntologyFiles = None,
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="D", help="The time that one call may take.")
    ] = "30s",
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, help="How many events an answer has at most."),
    ] = 1_000,
) -> None:
    """Serve an assistant: check, explain, compare, test and run rules, and ask histories.

    An assistant starts this command and speaks the Model Context Protocol with it, over the
    standard streams. No file is changed, and only files under the roots are read. The reference of
    the language and the cookbook are there as resources.

    \b
    Example:
      ensue mcp
      ensue mcp --root rules --root events --history postgresql://127.0.0.1/events

    \b
    Exit codes:
      0  the assistant has ended it
      2  a root that is not there, the extra is not installed, or a wrong call
    """
    roots = [each.resolve() for each in root or [Path()]]
    for given in roots:
        if not given.is_dir():
            raise UsageError(f"`{given}` is no folder: give `--root` a folder with rules")
    missing = [f"`{each}`" for each in ontology or () if not each.is_file()]
    if missing:
        raise UsageError(f"there is no file {', '.join(missing)}: give `--ontology` a file")
    seconds = seconds_of(deadline)
    try:
        from ensue.assistants.lines import LONGEST_LINE, bound_standard_input
        from ensue.assistants.reach import Reach
        from ensue.assistants.server import assistants_server
    except ModuleNotFoundError as error:
        if error.name not in ("anyio", "mcp", "pydantic"):
            raise
        raise UsageError(
            "`ensue mcp` needs the protocol's library: pip install 'ensue[mcp]'"
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
