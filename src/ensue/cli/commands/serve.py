"""`ensue serve`: a gateway between event services, as a TOML file says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ServedConfig = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The TOML file.", show_default=False)
]


def serve(config: ServedConfig) -> None:
    """Run a gateway between event services until it is told to stop.

    Says `ready` on the standard error once every service is connected and every standing request
    is in force. SIGTERM ends it, after what is on its way has arrived.

    \b
    Example:
      ensue serve gateway.toml

    \b
    Exit codes:
      0  it was told to stop
      2  unusable configuration
    """
    from ensue.federation.serving import serve_gateway

    raise typer.Exit(serve_gateway(config))
