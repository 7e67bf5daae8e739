"""`ensue demo`: a rule, some events and the outputs, in a minute.

The rule and the events are files of this package (`story/`), and the outputs shown are those of the
engine. Only the texts about users without an output are written by hand, and a test checks them.
With `--spark` the example runs a second time, on Spark, and the outputs are compared; a machine
without Spark says what is missing.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue.cli.spark_run import missing_for_spark
from ensue.cli.terminal import EXIT_FINDINGS, console, counted, width
from ensue.engine.counts import Counts
from ensue.errors import UsageError
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.library import Library, parse

if TYPE_CHECKING:
    from rich.text import Text

LIBRARY, EVENTS = "logins.cor", "logins.jsonl"
INTRODUCTION = (
    "A rule watches the logins of a company. For each user by itself it waits for three failures"
    " and then a login, all within a minute. It distinguishes the office, where addresses start"
    " with 10., from the rest of the world."
)
ADDRESS_COLUMN, MARK_COLUMN = 32, 48

NOT_FOUND = {
    "cleo": "failed only twice, and the rule wants three failures",
    "dan": "logged in three minutes after his failures, which count for one minute",
    "eve": "never logged in, so nothing completes the rule",
}

_KEYWORDS = r"\b(eventtype|attribute|correlation|string|where|within|by|case|push|new|LIKE|NOT)\b"


def demo(
    write: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the rule and the events to a folder, and exit."),
    ] = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Run the example again on Spark, and compare the outputs."),
    ] = False,
) -> None:
    """Show an example in a minute: a rule, events, outputs.

    \b
    Example:
      ensue demo
      ensue demo --spark
      ensue demo --write demo

    \b
    Exit codes:
      0  good
      1  --spark, and its outputs differ
      2  a wrong call
    """
    if write is not None:
        _write_files(write)
        return
    rule, events = _read(LIBRARY), [decode(line) for line in _read(EVENTS).splitlines()]
    library = parse(rule, LIBRARY)
    outputs = list(library.run(events))
    _say("Somebody is trying passwords", "bold")
    _say("")
    for line in textwrap.wrap(INTRODUCTION, width() - 2):
        _say(line)
    _heading("The rule", LIBRARY)
    _show_rule(rule)
    _heading("The events", EVENTS)
    _show_events(events, outputs)
    _heading("What follows", counted(len(outputs), "output"))
    for output in outputs:
        _show_output(output)
    _say("")
    _say("  And what does not:")
    for user, reason in NOT_FOUND.items():
        _tell_of(user, reason)
    equal = _tell_on_spark(library, events, outputs) if spark else True
    _heading("What to try next")
    _show_next_steps()
    if not equal:
        raise typer.Exit(EXIT_FINDINGS)


def _read(name: str) -> str:
    return (files("ensue.cli") / "story" / name).read_text("utf-8")


def _write_files(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    taken = [str(folder / name) for name in (LIBRARY, EVENTS) if (folder / name).exists()]
    if taken:
        raise UsageError(f"`{taken[0]}` exists already: choose another folder")
    for name in (LIBRARY, EVENTS):
        (folder / name).write_text(_read(name), "utf-8")
    print(f"wrote {folder / LIBRARY} and {folder / EVENTS}; now try")
    print(f"  ensue run {folder / LIBRARY} --events {folder / EVENTS}")


def _say(text: str, style: str = "") -> None:
    _line((text, style))


def _line(*parts: str | tuple[str, str]) -> None:
    """Print a line; plain text if the standard output is no terminal."""
    if not sys.stdout.isatty():
        print("".join(part if isinstance(part, str) else part[0] for part in parts).rstrip())
        return
    from rich.text import Text

    console(False).print(Text.assemble(*parts))


def _heading(title: str, aside: str = "") -> None:
    _say("")
    aside = f" {aside}" if aside else ""
    rule = "-" * (width() - 2 - len(f"{title} {aside}"))
    _line((title, "bold cyan"), " ", (rule, "dim"), (aside, "dim"))
    _say("")


def _show_rule(rule: str) -> None:
    for line in rule.rstrip().splitlines():
        if sys.stdout.isatty():
            console(False).print(_highlighted(f"  {line}"))
        else:
            print(f"  {line}".rstrip())


def _highlighted(line: str) -> Text:
    from rich.text import Text

    text = Text(line)
    text.highlight_regex(_KEYWORDS, "magenta")
    text.highlight_regex(r"\b(inside|outside)\b", "yellow")
    text.highlight_regex(r"'[^']*'", "green")
    text.highlight_regex(r"\b\d+ min\b|\{\d+\}", "cyan")
    text.highlight_regex(r"//.*", "dim")
    return text


def _show_events(events: Sequence[Event], outputs: Sequence[Event]) -> None:
    found = {output.extensions["trigger"]: output for output in outputs}
    _say(f"  {'id':>3}  {'time':8}  {'type':6}  {'user':5}  address", "dim")
    for event in events:
        row = (
            f"  {event.id:>3}  {event.at:%H:%M:%S}  {event.type:6}"
            f"  {event.data['user']:5}  {event.data['address']}"
        )
        style = "" if event.type == "Failed" else "bold"
        mark = f"<- {found[event.id].data['advice']}" if event.id in found else ""
        _line((row, style), *_beside_or_below(row, mark))


def _beside_or_below(row: str, mark: str) -> list[str | tuple[str, str]]:
    if not mark:
        return []
    padding = " " * (MARK_COLUMN - len(row))
    if MARK_COLUMN + len(mark) > width():
        padding = "\n" + " " * ADDRESS_COLUMN
    return [padding, (mark, "bold red")]


def _show_output(output: Event) -> None:
    facts = {key: str(value) for key, value in output.extensions.items()}
    causes = " and ".join(facts["causes"].split(","))
    advice, address = output.data["advice"], output.data["address"]
    _tell_of(
        output.data["user"],
        f"{advice}: three failures, then a login from {address}",
        f"event {facts['trigger']} completed the rule; label {facts['labels']} was active;"
        f" causes: {causes}",
        signal=advice,
    )


def _tell_of(user: str, *sentences: str, signal: str = "") -> None:
    """Print a user, and beside the name some sentences, wrapped to the width of the terminal."""
    lines = [line for each in sentences for line in textwrap.wrap(each, width() - 8)]
    for name, line in zip([user] + [""] * len(lines), lines, strict=False):
        head = signal if line.startswith(signal) else ""
        _line((f"  {name:<6}", "bold"), (head, "bold red"), line.removeprefix(head))


def _tell_on_spark(library: Library, events: Sequence[Event], outputs: Sequence[Event]) -> bool:
    """Run the example on Spark. False if its outputs differ; a machine without Spark passes."""
    _heading("The same story, on Spark")
    lacking = missing_for_spark()
    if lacking is not None:
        _say(f"  skipped: {lacking}")
        return True
    from ensue.spark.batch.events import outputs_of_events
    from ensue.spark.session import temporary_session

    started = time.monotonic()
    _progress("starting Spark on this machine; that takes some seconds")
    with temporary_session() as session:
        _progress(f"running the rule over the {counted(len(events), 'event')}")
        again = list(outputs_of_events(library, events, Counts(), spark=session))
    for output in again:
        _line((f"  {output.data['user']:<6}", "bold"), (output.data["advice"], "bold red"))
    seconds = time.monotonic() - started
    equal = again == list(outputs)
    _say("")
    if equal:
        what = f"{counted(len(again), 'output')}, every field and the order"
        _line(("  equal", "bold green"), f": {what} ({seconds:.0f} s)")
    else:
        _line(("  different", "bold red"), ": Spark does not give the outputs above")
        _line("  this is a bug in ensue; please report it with the version of PySpark")
    return equal


def _progress(text: str) -> None:
    _say(f"  {text} ...", "dim")
    sys.stdout.flush()


def _show_next_steps() -> None:
    steps = {
        "ensue demo --write demo && cd demo": "get both files",
        f"ensue run {LIBRARY} --events {EVENTS}": "the outputs, as JSON lines",
        f"ensue explain {LIBRARY} GuessedPassword": "the rule in words",
        f"ensue check {LIBRARY}": "after a change: all mistakes",
    }
    beside = 46 + max(map(len, steps.values())) <= width()
    for command, purpose in steps.items():
        if beside:
            _line((f"  {command:<44}", "green"), purpose)
        else:
            _line(f"  {purpose}")
            _line((f"    {command}", "green"))
