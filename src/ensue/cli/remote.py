"""Options of commands that call a server; `ensue.remote` makes the calls."""

from __future__ import annotations

from typing import Annotated

import typer

ServerUrl = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The address of the server.", show_default=False),
]
ServerContext = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="The context of the server.", show_default=False
    ),
]
