"""`ensue publish`: events from a file, a pipe or the command line to a server."""

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
TOLD = 10
PATIENCE_SECONDS = 60.0
"""How long a server that has gone away is waited for."""
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

    An event that the server cannot take is named on the standard error; the others are taken. Lines
    of a pipe are sent as they come. A server that restarts in between is waited for.

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
    sum_ = _Sum()
    try:
        for lines in _batches(file, type, data, source):
            sum_.add(lines, _sent(server, lines, sum_))
    except KeyboardInterrupt:
        show(sum_.words())
        raise
    except EnsueError as error:
        raise UsageError(f"{error}\n{sum_.so_far()}") from None
    show(sum_.words())
    if sum_.rejected or sum_.unread:
        raise typer.Exit(EXIT_FINDINGS)


class _Line(NamedTuple):
    """A line of the input that is not empty."""

    number: int
    text: bytes


class _Sum:
    """What became of the events so far. What could not be taken is told at once."""

    def __init__(self) -> None:
        self.accepted = self.duplicates = self.rejected = self.unread = 0
        self.last = 0

    def add(self, lines: list[_Line], answer: dict[str, Any]) -> None:
        for each in answer["rejected"][:TOLD]:
            number = lines[each["index"]].number
            say(f"line {number}: {'; '.join(each['problems'])}", "yellow")
        for each in answer["unread"][:TOLD]:
            say(
                f"line {lines[each['index']].number}: kept, and not read by library"
                f" `{each['library']}`: {'; '.join(each['problems'])}",
                "yellow",
            )
        self.accepted += answer["accepted"]
        self.duplicates += answer["duplicates"]
        # The answer names the first of very many.
        rejected = len(lines) - answer["accepted"] - answer["duplicates"]
        if rejected > min(TOLD, len(answer["rejected"])):
            say(f"and {rejected - min(TOLD, len(answer['rejected'])):,} more", "yellow")
        self.rejected += rejected
        self.unread += len(answer["unread"])
        self.last = lines[-1].number

    def words(self) -> str:
        parts = [f"{counted(self.accepted, 'event')} published"]
        parts += [f"{self.duplicates} sent before"] if self.duplicates else []
        parts += [f"{self.rejected} rejected"] if self.rejected else []
        return ", ".join(parts)

    def so_far(self) -> str:
        if not self.last:
            return "nothing was published"
        return (
            f"{self.words()}, up to line {self.last:,}: once the server is there, publish it all"
            " again; what it has already, by source, id and time, it does not read twice"
        )


def _sent(server: Server, lines: list[_Line], sum_: _Sum) -> dict[str, Any]:
    """The answer to a batch. One of which nothing can be taken has a problem that lists why.

    A server that goes away in between is waited for, if what it may have taken already can be told
    from new events.
    """
    body = b"\n".join(each.text for each in lines)
    headers = {"Content-Type": "application/x-ndjson"}
    limit = time.monotonic() + PATIENCE_SECONDS
    may_wait = sum_.last > 0 and all(b'"time"' in each.text for each in lines)
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
        say("the server is gone; trying again", "dim")
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
    """Lines of a file as they can be had: what a pipe holds back is not waited for."""
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
        raise UsageError(f"`--data` is no JSON: {error}") from None
    event = {"id": str(uuid4()), "source": source, "type": type_, "data": value}
    return json.dumps(event).encode()
