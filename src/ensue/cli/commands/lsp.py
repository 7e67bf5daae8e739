"""`ensue lsp`: the language server for editors."""

from __future__ import annotations

import os
from typing import Annotated, BinaryIO, cast

import typer

from ensue.cli.libraries import OntologyFiles
from ensue.cli.terminal import say
from ensue.errors import UsageError


def lsp(
    ontology: OntologyFiles = None,
    tcp: Annotated[
        int | None,
        typer.Option(
            "--tcp",
            metavar="PORT",
            min=1,
            max=65_535,
            help="Listen on this port of 127.0.0.1; by default, use the standard streams.",
        ),
    ] = None,
) -> None:
    """Language server for editors: mistakes, completion, hovers, renaming, formatting.

    An editor starts this command and speaks the Language Server Protocol with it. Files of a folder
    are read together if one needs the event types of another.

    \b
    Example:
      ensue lsp
      ensue lsp --tcp 2087
      ensue lsp --ontology wine.ttl

    \b
    Exit codes:
      0  the editor has ended the session
      2  the extra `lsp` is not installed, or a wrong call
    """
    try:
        from ensue.editor.server import editor_server
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise UsageError(
            f"`ensue lsp` needs `{error.name}`, which is not installed: pip install 'ensue[lsp]'"
        ) from None
    from ensue.editor.streams import LOOPBACK, BoundedInput, accepted, listening
    from ensue.events.sources import standard_input

    server = editor_server(ontology or ())
    if tcp is None:
        # The server closes its output stream at the end, so it gets a copy of the standard output.
        writes = cast(BinaryIO, open(os.dup(1), "wb"))  # noqa: SIM115
        server.start_io(cast(BinaryIO, BoundedInput(standard_input())), writes)
        return
    with listening(tcp) as listener:
        say(f"listening on {LOOPBACK}:{tcp}", "dim")
        reads, writes = accepted(listener)
    server.start_io(reads, writes)
