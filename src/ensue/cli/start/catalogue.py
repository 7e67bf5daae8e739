"""The catalogue of commands: the module of each, and its line in `ensue --help`.

A command is imported when it is called, so that no command waits for imports that only another one
needs, and `ensue --help` imports none. A command is a function or, if it has subcommands, a
`typer.Typer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer

from ensue.cli.start.plain_help import show_metavars
from ensue.cli.start.plain_options import convert_plainly


@dataclass(frozen=True)
class CommandEntry:
    """A command: its module below `ensue.cli.commands`, its name there, and its line of help."""

    module: str
    attribute: str
    line: str


ENTRIES = {
    "check": CommandEntry("check", "check", "Check a library, and report all mistakes at once."),
    "run": CommandEntry("run", "run", "Run a library over events, and write its outputs."),
    "explain": CommandEntry(
        "explain", "explain", "Explain a correlation in words, or draw its machine."
    ),
    "compare": CommandEntry(
        "compare", "compare_correlations", "Compare two correlations: does one contain the other?"
    ),
    "schedule": CommandEntry(
        "schedule", "schedule", "Priorities of operations, and whether all meet their deadlines."
    ),
    "test": CommandEntry(
        "test", "run_cases", "Test rules by golden cases: events and expected outputs."
    ),
    "fmt": CommandEntry("fmt", "fmt", "Format libraries; comments are kept."),
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
        "remote.rules", "app", "Manage the libraries of a server: list, put, try, roll back."
    ),
    "top": CommandEntry(
        "remote.top", "top", "Show throughput, latency and rules of a server, live."
    ),
    "context": CommandEntry(
        "remote.context", "app", "Name servers, for the commands that call one."
    ),
    "request": CommandEntry(
        "remote.request", "request", "Send a request to the gateways of a federation."
    ),
    "lsp": CommandEntry("lsp", "lsp", "Language server for editors: mistakes, completion, hovers."),
    "mcp": CommandEntry("mcp", "mcp", "Tools for assistants: check, explain, compare, test, run."),
    "demo": CommandEntry("demo", "demo", "Show an example in a minute: a rule, events, outputs."),
    "bench": CommandEntry("bench", "bench", "Measure Ensue on this machine, beside other engines."),
    "warm": CommandEntry("warm", "warm", "Compile what the first runs would compile."),
    "history": CommandEntry(
        "history", "app", "Keep events in a history, find them, run rules over them."
    ),
}


class LoadedCommands(Mapping[str, Any]):
    """The commands by name. Getting a command imports it; iterating over names imports nothing."""

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
    convert_plainly(command)
    show_metavars(command)
    return command
