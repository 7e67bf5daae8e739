"""`ensue publish`: events from a file, a pipe or the command line to a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from ensue.cli.remote import ServerContext, ServerUrl
from ensue.cli.terminal import EXIT_FINDINGS, counted, say, show
from ensue.errors import UsageError
from ensue.remote import RefusedError, Server

BATCH = 1_000
TOLD = 10


def publish(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="CloudEvents as JSON lines; `-` for the standard input.",
            show_default=False,
        ),
    ] = None,
    type: Annotated[  # noqa: A002 - the name that users know
        str | None, typer.Option(metavar="TYPE", help="One event of this type.", show_default=False)
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="JSON", help="Its data.", show_default=False)
    ] = None,
    source: Annotated[str, typer.Option(metavar="SOURCE", help="Its source.")] = "cli",
    url: ServerUrl = None,
    context: ServerContext = None,
) -> None:
    """Publish events to a server. When it returns, they are kept and every rule has read them.

    An event that the server cannot take is named on the standard error; the others are taken.

    \b
    Example:
      ensue publish events.jsonl
      ensue publish --type Reading --data '{"van": "van-1", "celsius": 9.5}'

    \b
    Exit codes:
      0  every event was taken
      1  some could not be taken
      2  the server cannot be reached or refuses, or a wrong call
    """
    if (file is None) == (type is None):
        raise UsageError("give a file of events, or `--type` and `--data` for a single one")
    server = Server(url, context)
    accepted = rejected = duplicates = unread = first = 0
    for lines in _batches(file, type, data, source):
        body = "\n".join(lines).encode()
        answer = _sent(server, body)
        for each in answer["rejected"][:TOLD]:
            say(f"line {first + each['index'] + 1}: {'; '.join(each['problems'])}", "yellow")
        for each in answer["unread"][:TOLD]:
            say(
                f"line {first + each['index'] + 1}: kept, and not read by library"
                f" `{each['library']}`: {'; '.join(each['problems'])}",
                "yellow",
            )
        accepted += answer["accepted"]
        duplicates += answer["duplicates"]
        rejected += len(answer["rejected"])
        unread += len(answer["unread"])
        first += len(lines)
    parts = [f"{counted(accepted, 'event')} published"]
    parts += [f"{duplicates} sent before"] if duplicates else []
    parts += [f"{rejected} rejected"] if rejected else []
    show(", ".join(parts))
    if rejected or unread:
        raise typer.Exit(EXIT_FINDINGS)


def _sent(server: Server, body: bytes) -> dict[str, Any]:
    """A batch of which nothing can be taken is answered with a problem that lists why."""
    headers = {"Content-Type": "application/x-ndjson"}
    try:
        answer: dict[str, Any] = server.ask("POST", "/v1/events", content=body, headers=headers)
    except RefusedError as error:
        if "rejected" not in error.document:
            raise
        return {"accepted": 0, "duplicates": 0, "unread": [], **error.document}
    return answer


def _batches(
    file: Path | None, type_: str | None, data: str | None, source: str
) -> Iterator[list[str]]:
    if type_ is not None:
        yield [_single(type_, data, source)]
        return
    assert file is not None
    if str(file) == "-":
        from ensue.events.sources import standard_input

        standard_input()
    with sys.stdin if str(file) == "-" else file.open(encoding="utf-8") as lines:
        waiting: list[str] = []
        for line in lines:
            # What came together is sent together, and a pipe is not waited for.
            waiting.append(line.rstrip("\n"))
            if len(waiting) == BATCH:
                yield waiting
                waiting = []
        if waiting:
            yield waiting


def _single(type_: str, data: str | None, source: str) -> str:
    try:
        value = None if data is None else json.loads(data)
    except ValueError as error:
        raise UsageError(f"`--data` is no JSON: {error}") from None
    return json.dumps({"id": str(uuid4()), "source": source, "type": type_, "data": value})
