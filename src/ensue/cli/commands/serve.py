"""`ensue serve`: channels, gateways, history, API and console in one process."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.terminal import say
from ensue.errors import UsageError


def serve(
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFIG]",
            help="A TOML file with the settings of a server, a gateway, or both.",
            show_default=False,
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Without a file: the address to listen on, such as 127.0.0.1:9000.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a server: an API and a console over rules, history and gateways.

    It runs until SIGTERM or Ctrl-C, prints `ready` on the standard error once it accepts requests,
    and reads its file again on SIGHUP. Without a file it listens on 127.0.0.1:8420, stores nothing,
    and shows a demonstration with generated events and rules. A file with only the tables of a
    gateway runs the gateway, which is ready once every service is connected and every standing
    request is in force.

    \b
    Example:
      ensue serve
      ensue serve --listen 127.0.0.1:9000
      ensue serve ensue.toml
      ensue serve gateway.toml

    \b
    Exit codes:
      0  stopped by a signal
      2  settings or libraries with errors, or an address that is in use
    """
    from ensue.server.settings import read_settings

    if config is not None and not read_settings(config).hosts_api:
        from ensue.federation.serving import serve_gateway

        logging.basicConfig(
            stream=sys.stderr, level=logging.WARNING, format="%(levelname)s: %(message)s"
        )

        raise typer.Exit(serve_gateway(config))
    try:
        from ensue.server.serving import serve as run
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "h11", "httptools", "websockets"):
            raise
        raise UsageError(
            f"the server needs `{error.name}`, which is not installed: pip install 'ensue[server]'"
        ) from None
    run(None if config is None else str(config), say, listen)
