"""`ensue top`: the figures of a server, live in the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.remote import ServerContext, ServerUrl
from ensue.cli.terminal import console
from ensue.remote import Server, UnreachableError

if TYPE_CHECKING:
    from rich.console import Group

BARS = " ▁▂▃▄▅▆▇█"


def top(
    once: Annotated[bool, typer.Option("--once", help="Print the figures once, and exit.")] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", help="The time between updates.")
    ] = 1.0,
    url: ServerUrl = None,
    context: ServerContext = None,
) -> None:
    """Show throughput, latency and rules of a server, live. Ctrl-C ends it.

    \b
    Example:
      ensue top
      ensue top --once --context production

    \b
    Exit codes:
      0    good
      2    the server cannot be reached or refuses, or a wrong call
      130  stopped by the user
    """
    server = Server(url, context)
    if once:
        console(False).print(_screen(server))
        return
    from rich.live import Live

    screen: Any = _screen(server)
    with Live(screen, console=console(False), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(max(0.1, every))
            try:
                screen = shown = _screen(server)
            except UnreachableError:
                shown = _with_note(screen, "the server does not answer; trying again")
            live.update(shown, refresh=True)


def _with_note(screen: Group, note: str) -> Group:
    """The last figures, below a note that they are old."""
    from rich.console import Group
    from rich.text import Text

    return Group(Text(note, "bold red"), screen)


def _screen(server: Server) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    figures = server.ask("GET", "/v1/figures", params={"seconds": 60})
    rules = server.ask("GET", "/v1/rules")
    samples: list[dict[str, Any]] = figures["samples"]
    last = (
        samples[-1] if samples else {"events": 0, "outputs": 0, "median_ms": None, "p99_ms": None}
    )
    head = Text.assemble(
        ("ensue ", "bold"),
        f"{server.url}  up {figures['uptime']:.0f} s  position {figures['position']:,}\n",
        ("events  ", "dim"),
        f"{last['events']:>7,}/s {_spark([each['events'] for each in samples])}\n",
        ("outputs ", "dim"),
        f"{last['outputs']:>7,}/s {_spark([each['outputs'] for each in samples])}\n",
        ("latency ", "dim"),
        f"{_milliseconds(last['median_ms'])} median,"
        f" {_milliseconds(last['p99_ms'])} 99th percentile\n",
        ("waiting ", "dim"),
        f"{figures['waiting']:,} events, history {figures['history_lag']:,} behind,"
        f" {figures['subscribers']:,} subscribers, {figures['late']:,} late,"
        f" {figures['rejected']:,} rejected",
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name, justify in (("outputs", "right"), ("a minute", "right"), ("rule", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("last match")
    for each in sorted(rules, key=lambda rule: -rule["rate"]):
        when = each["last"]
        table.add_row(
            f"{each['outputs']:,}",
            f"{each['rate'] * 60:.1f}",
            f"{each['library']}/{each['rule']}",
            f"{when['time']} {when['key'] or ''}" if when else "never",
        )
    return Group(head, Text(""), table)


def _spark(values: list[int]) -> str:
    most = max(values, default=0) or 1
    return "".join(BARS[round(8 * each / most)] for each in values)


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"
