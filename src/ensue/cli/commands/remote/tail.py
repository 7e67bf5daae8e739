"""`ensue tail`: print events and outputs of a server as they come, as JSON lines."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from ensue.cli.remote import ServerContext, ServerUrl
from ensue.cli.terminal import say, show
from ensue.remote import Server


def tail(
    filter: Annotated[  # noqa: A002 - the name that users know
        str | None,
        typer.Argument(metavar="[FILTER]", help="A filter, in CESQL.", show_default=False),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="One or more of event, output and late, joined by commas.",
            show_default=False,
        ),
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only outputs of this library.", show_default=False),
    ] = None,
    correlation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only outputs of this correlation.", show_default=False),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Start after this id; 0 for all.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Exit after this many.", show_default=False)
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Print short lines instead of JSON.")
    ] = False,
    url: ServerUrl = None,
    context: ServerContext = None,
) -> None:
    """Print events and outputs of a server as they come, one JSON object a line.

    After a lost connection the command reconnects and goes on where it was.

    \b
    Example:
      ensue tail
      ensue tail "celsius > 7" --kinds event
      ensue tail --library coldchain --short

    \b
    Exit codes:
      0    as many as --limit says have come
      2    the server cannot be reached or refuses, or a wrong call
      130  stopped by the user
    """
    given = {
        "filter": filter,
        "kinds": kinds,
        "library": library,
        "correlation": correlation,
        "after": after,
    }
    server = Server(url, context)
    wanted = {name: value for name, value in given.items() if value is not None}
    for number, (kind, identity, body) in enumerate(
        server.stream(wanted, lambda told: say(told, "dim")), 1
    ):
        show(_short(kind, identity, body) if short else body)
        sys.stdout.flush()
        if limit is not None and number >= limit:
            return


def _short(kind: str, identity: str, body: str) -> str:
    event = json.loads(body)
    by = f" by {event['correlation']}" if kind == "output" else ""
    key = f" [{event['partitionkey']}]" if event.get("partitionkey") is not None else ""
    data = json.dumps(event.get("data"), ensure_ascii=False)
    return f"{identity:>8} {event['time'][11:23]:12} {kind:6} {event['type']}{by}{key} {data}"
