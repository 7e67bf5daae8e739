"""`ensue publish`: send events from a file, a pipe or the command line to a server."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

import typer

from ensue.cli.remote import ServerContext, ServerUrl
from ensue.cli.terminal import EXIT_FINDINGS, counted, say, show
from ensue.errors import EnsueError, UsageError
from ensue.remote import COME_AGAIN, RequestRefusedError, Server, UnreachableError

BATCH, BATCH_BYTES = 1_000, 4 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
MOST_NAMED = 10
PATIENCE_SECONDS = 60.0
"""How long the command waits for a server that does not answer any more."""
PAUSE_SECONDS = 1.0


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

    An event that the server rejects is named on the standard error; the others are accepted. Lines
    of a pipe are sent as they come. If the server restarts meanwhile, the command waits for it.

    \b
    Example:
      ensue publish events.jsonl
      ensue publish --type Reading --data '{"van": "van-1", "celsius": 9.5}'

    \b
    Exit codes:
      0  every event was accepted
      1  some events were rejected
      2  the server cannot be reached or refuses, or a wrong call
    """
    if (file is None) == (type is None):
        raise UsageError(
            "`publish` needs either a file of events, or `--type` for a single event: give one"
        )
    server = Server(url, context)
    totals = _Totals()
    try:
        for lines in _batches(file, type, data, source):
            totals.add(lines, _sent(server, lines, totals))
    except KeyboardInterrupt:
        show(totals.words())
        raise
    except EnsueError as error:
        raise UsageError(f"{error}\n{totals.so_far()}") from None
    show(totals.words())
    if totals.rejected or totals.unread:
        raise typer.Exit(EXIT_FINDINGS)


class _Line(NamedTuple):
    """A line of the input that is not empty."""

    number: int
    text: bytes


_TAKEN_OR_GONE = ("accepted", "duplicates", "expired")


class _Totals:
    """Counts of accepted and rejected events. Rejected events are named as they are added."""

    def __init__(self) -> None:
        self.accepted = self.duplicates = self.expired = self.rejected = self.unread = 0
        self.last = 0

    def add(self, lines: list[_Line], answer: dict[str, Any]) -> None:
        for each in answer["rejected"][:MOST_NAMED]:
            number = lines[each["index"]].number
            say(f"line {number}: {'; '.join(each['problems'])}", "yellow")
        for each in answer["unread"][:MOST_NAMED]:
            say(
                f"line {lines[each['index']].number}: kept, but not read by library"
                f" `{each['library']}`: {'; '.join(each['problems'])}",
                "yellow",
            )
        self.accepted += answer["accepted"]
        self.duplicates += answer["duplicates"]
        self.expired += answer.get("expired", 0)
        # If very many are rejected, the answer contains only the first ones.
        rejected = len(lines) - sum(answer.get(each, 0) for each in _TAKEN_OR_GONE)
        if rejected > min(MOST_NAMED, len(answer["rejected"])):
            say(f"and {rejected - min(MOST_NAMED, len(answer['rejected'])):,} more", "yellow")
        self.rejected += rejected
        self.unread += len(answer["unread"])
        self.last = lines[-1].number

    def words(self) -> str:
        parts = [f"{counted(self.accepted, 'event')} published"]
        parts += [f"{self.duplicates} sent before"] if self.duplicates else []
        parts += [f"{self.expired} expired"] if self.expired else []
        parts += [f"{self.rejected} rejected"] if self.rejected else []
        return ", ".join(parts)

    def so_far(self) -> str:
        if not self.last:
            return "nothing was published"
        return (
            f"{self.words()}, up to line {self.last:,}: once the server answers, publish the whole"
            " file again; events that it has already are not read twice"
        )


def _sent(server: Server, lines: list[_Line], totals: _Totals) -> dict[str, Any]:
    """Send a batch. Returns the answer of the server, also if it rejects every event.

    If the server does not answer any more, the batch is sent again for a while: the server
    recognises events that it has already.
    """
    body = b"\n".join(each.text for each in lines)
    headers = {"Content-Type": "application/x-ndjson"}
    limit = time.monotonic() + PATIENCE_SECONDS
    may_wait = totals.last > 0
    while True:
        try:
            answer: dict[str, Any] = server.ask("POST", "/v1/events", content=body, headers=headers)
            return answer
        except RequestRefusedError as error:
            if "rejected" in error.document:
                return {"accepted": 0, "duplicates": 0, "unread": [], **error.document}
            if error.status not in COME_AGAIN or not may_wait or time.monotonic() > limit:
                raise
        except UnreachableError:
            if not may_wait or time.monotonic() > limit:
                raise
        say("the server does not answer; trying again", "dim")
        time.sleep(PAUSE_SECONDS)


def _batches(
    file: Path | None, type_: str | None, data: str | None, source: str
) -> Iterator[list[_Line]]:
    if type_ is not None:
        yield [_Line(1, _single(type_, data, source))]
        return
    assert file is not None
    number = 0
    for texts in _read(file):
        waiting: list[_Line] = []
        size = 0
        for text in texts:
            number += 1
            if waiting and (len(waiting) == BATCH or size + len(text) > BATCH_BYTES):
                yield waiting
                waiting, size = [], 0
            if text.strip():
                waiting.append(_Line(number, text))
                size += len(text)
        if waiting:
            yield waiting


def _read(file: Path) -> Iterator[list[bytes]]:
    """The lines of a file or a pipe, in lists, as soon as they can be read."""
    from ensue.events.sources import standard_input

    with standard_input() if str(file) == "-" else file.open("rb") as opened:
        rest = b""
        while chunk := os.read(opened.fileno(), CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if lines:
                yield lines
        if rest:
            yield [rest]


def _single(type_: str, data: str | None, source: str) -> bytes:
    try:
        value = None if data is None else json.loads(data)
    except ValueError as error:
        raise UsageError(f"`--data` is not valid JSON: {error}") from None
    event = {"id": str(uuid4()), "source": source, "type": type_, "data": value}
    return json.dumps(event).encode()
