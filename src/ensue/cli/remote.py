"""Options of commands that call a server; the server itself is called by `ensue.remote`."""

from __future__ import annotations

from typing import Annotated

import typer

ServerUrl = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="The server.", show_default=False)
]
ServerContext = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="The server's context.", show_default=False),
]
