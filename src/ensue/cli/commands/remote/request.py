"""`ensue request`: send a request to the gateways of a federation, over one of its services."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from ensue.cli.terminal import EXIT_FINDINGS, say
from ensue.configuration.bounded import decoded, read_all, read_text
from ensue.errors import UsageError

Verb = Annotated[
    str,
    typer.Argument(
        metavar="VERB",
        help="subscribe, unsubscribe, announce, unannounce, announced or publish.",
        show_default=False,
    ),
]


def request(
    verb: Verb,
    via: Annotated[
        str,
        typer.Option(
            "--via",
            metavar="NAME",
            help="The service to send over, by its name in the federation.",
        ),
    ],
    url: Annotated[str, typer.Option("--url", metavar="URL", help="The address of that service.")],
    at: Annotated[
        str, typer.Option("--at", metavar="NAME", help="The service that requests events.")
    ] = "",
    services: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            "--to",
            metavar="NAME",
            help="Names, kinds or patterns of other services; by default all. Repeatable.",
        ),
    ] = None,
    where: Annotated[
        str, typer.Option("--where", metavar="FILTER", help="A filter of events; by default all.")
    ] = "TRUE",
    event: Annotated[
        Path | None,
        typer.Option(
            "--event", metavar="FILE|-", help="A file with one event to publish; - for stdin."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", metavar="KIND", help="The kind of service, if the URL does not tell."
        ),
    ] = None,
    control: Annotated[
        str,
        typer.Option(
            "--control",
            metavar="ADDRESS",
            help="The control address, if it is not the default.",
        ),
    ] = "",
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="Seconds to wait for an answer.")
    ] = 5.0,
) -> None:
    """Send a request to the gateways of a federation, over one of its services.

    \b
    Example:
      ensue request subscribe --via cars --url mqtt://127.0.0.1 \\
          --at office --where "speed > 30"

    \b
    Exit codes:
      0  a gateway has fulfilled the request
      1  no gateway has answered, or none could fulfil it
      2  a wrong call, or the service cannot be reached
    """
    from ensue.federation.adapters.base import Service
    from ensue.federation.requesting import kind_of, run_request
    from ensue.federation.routing import control as events
    from ensue.lang.diagnostics import did_you_mean
    from ensue.subscriptions import Filter

    if verb not in events.VERBS:
        raise UsageError(f"there is no request `{verb}`: {did_you_mean(verb, events.VERBS)}")
    if verb in ("subscribe", "unsubscribe") and not at:
        raise UsageError(f"`{verb}` needs `--at NAME`, the service that requests events")
    if (verb == "publish") != (event is not None):
        raise UsageError("`publish` needs `--event FILE`, and no other request allows it")
    written: dict[str, Any] = {"where": str(Filter.parse(where))}
    if event is not None:
        written["event"] = _read_event(event)
    asked = events.Request(events.new_id(), verb, at, tuple(services or ()), **written)
    sender = f"request-{socket.gethostname()}-{os.getpid()}"
    service = Service(via, kind_of(url, kind), url, control=control, gateway=sender)
    if not run_request(service, asked, wait, say):
        raise typer.Exit(EXIT_FINDINGS)


def _read_event(path: Path) -> str:
    from ensue.events.cloudevents import encode
    from ensue.events.sources import standard_input
    from ensue.federation.limits import limits
    from ensue.federation.messages.bindings import read_structured

    hint = "give a file with one event"
    if str(path) == "-":
        text = decoded(
            read_all(standard_input(), limits().largest_message, "<stdin>", hint), "<stdin>"
        )
    else:
        text = read_text(path, limits().largest_message, hint)
    return encode(read_structured(text)).decode()
