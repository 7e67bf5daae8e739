"""Which commands there are: where each stands, and its line in `ensue --help`.

A command is imported when it is called, so that none waits for what only another one needs, and
the help of `ensue` waits for none. A command is a function or, if it has commands of its own, a
`typer.Typer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer

from ensue.cli.start.plain_help import tell_plainly
from ensue.cli.start.plain_options import read_plainly


@dataclass(frozen=True)
class CommandEntry:
    """A command: its module below `ensue.cli.commands`, its name there, and what it is for."""

    module: str
    attribute: str
    line: str


ENTRIES = {
    "check": CommandEntry("check", "check", "Check a library: every mistake in it, at once."),
    "run": CommandEntry("run", "run", "Run a library over events, and put out what follows."),
    "explain": CommandEntry(
        "explain", "explain", "Explain a correlation in words, or draw its machine."
    ),
    "compare": CommandEntry(
        "compare", "compare_correlations", "Compare two correlations: is one within the other?"
    ),
    "test": CommandEntry("test", "run_cases", "Test rules by golden cases, your own included."),
    "fmt": CommandEntry("fmt", "fmt", "Lay libraries out, comments kept."),
    "stream": CommandEntry(
        "stream", "stream", "Run rules over a stream with Spark, from a source to a sink."
    ),
    "serve": CommandEntry(
        "serve", "serve", "Run a server: an API and a console over rules and history."
    ),
    "publish": CommandEntry("remote.publish", "publish", "Publish events to a server."),
    "tail": CommandEntry(
        "remote.tail", "tail", "Print events and outputs of a server as they come."
    ),
    "rules": CommandEntry(
        "remote.rules", "app", "Libraries of a server: list, put, try, put back."
    ),
    "top": CommandEntry(
        "remote.top", "top", "Show throughput, latency and rules of a server, live."
    ),
    "context": CommandEntry(
        "remote.context", "app", "Servers under names, for the commands that ask one."
    ),
    "request": CommandEntry(
        "remote.request", "request", "Ask the gateways of a federation for something."
    ),
    "lsp": CommandEntry("lsp", "lsp", "Serve an editor: mistakes as you type, completion, hovers."),
    "mcp": CommandEntry("mcp", "mcp", "Serve an assistant: check, explain, compare, test and run."),
    "demo": CommandEntry("demo", "demo", "Tell a story in a minute: a rule, events, what follows."),
    "bench": CommandEntry("bench", "bench", "Measure Ensue on this machine, beside other engines."),
    "history": CommandEntry(
        "history", "app", "Keep events in a history, find them, run rules over them."
    ),
}


class LoadedCommands(Mapping[str, Any]):
    """The commands by name. Asking for one imports it; going over the names imports nothing."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        entry = ENTRIES[name]
        if name not in self._loaded:
            self._loaded[name] = _built(name, entry)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in ENTRIES

    def __iter__(self) -> Iterator[str]:
        return iter(ENTRIES)

    def __len__(self) -> int:
        return len(ENTRIES)


def _built(name: str, entry: CommandEntry) -> Any:
    found = getattr(import_module(f"ensue.cli.commands.{entry.module}"), entry.attribute)
    holder = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name, short_help=entry.line)
    else:
        holder.command(name, short_help=entry.line)(found)
    command = typer.main.get_group(holder).commands[name]
    read_plainly(command)
    tell_plainly(command)
    return command
