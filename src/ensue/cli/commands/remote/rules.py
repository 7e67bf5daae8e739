"""`ensue rules`: the libraries of a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from ensue.cli.libraries import SetOption, given_parameters
from ensue.cli.remote import ServerContext, ServerUrl
from ensue.cli.terminal import EXIT_FINDINGS, counted, say, show
from ensue.configuration.bounded import read_text
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.remote import RequestRefusedError, Server

Name = Annotated[str, typer.Argument(metavar="NAME", help="A library of the server.")]
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="The text of the library, a *.cor file.")
]

_PLAIN = {"Content-Type": "text/plain"}

app = typer.Typer(
    name="rules",
    help="""Manage the libraries of a server: list, put, try, roll back.

    Without a subcommand, the running rules are listed.

    \b
    Example:
      ensue rules
      ensue rules try heat heat.cor --since 2026-01-01T00:00:00Z
      ensue rules put heat heat.cor --note "warmer from 40 on"
      ensue rules rollback heat 1
      ensue rules why heat Rise van-3
    """,
    rich_markup_mode=None,
)


def _text(file: Path, settings: Sequence[str] | None) -> str:
    """The text of a file, with the values of `--set` in its declarations.

    Raises `UsageError` for a file that is no text or too large, and values that do not fit.
    """
    text = read_text(file, DEFAULT_LIMITS.bytes, "give a library (*.cor)")
    if not settings:
        return text
    # The parser takes a while to import, and only this needs it here.
    from ensue.lang.expanding.rewriting import text_with_values

    return text_with_values(text, given_parameters(settings))


@app.callback(invoke_without_command=True)
def listed(ctx: typer.Context, url: ServerUrl = None, context: ServerContext = None) -> None:
    """Manage the libraries of a server. Without a subcommand, list the running rules."""
    ctx.obj = (url, context)
    if ctx.invoked_subcommand is not None:
        return
    found = _server(ctx).ask("GET", "/v1/rules")
    if not found:
        say("no rule runs: `ensue rules put NAME FILE` starts a library")
        return
    show(f"{'outputs':>9} {'a minute':>9}  {'library':16} {'rule':24} last")
    for each in found:
        last = each["last"]
        when = f"{last['time']} {last['key'] or ''}".rstrip() if last else "never"
        show(
            f"{each['outputs']:>9} {each['rate'] * 60:>9.1f}  {each['library']:16}"
            f" {each['rule']:24} {when}"
        )


@app.command("put")
def put(
    ctx: typer.Context,
    name: Name,
    file: File,
    note: Annotated[str, typer.Option(metavar="TEXT", help="The reason of the change.")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Replace also what others have put meanwhile.")
    ] = False,
    settings: SetOption = None,
) -> None:
    """Make a text the running version of a library. Unchanged rules keep their state.

    What you have not seen (by `get`, `put` or `rollback`) is not replaced: the difference is shown.

    Exit codes: 1 if the text has errors, or if it would replace what you have not seen.
    """
    text = _text(file, settings)
    server = _server(ctx)
    seen = server.seen(name)
    condition = {"If-None-Match": "*"} if seen is None else {"If-Match": seen}
    try:
        done = server.ask_and_see(
            "PUT",
            _path(name),
            name,
            content=text.encode(),
            params={"note": note} if note else {},
            headers=_PLAIN if force else _PLAIN | condition,
        )
    except RequestRefusedError as error:
        if error.status == 412:
            _tell_what_stands(server, name, text, error)
            raise typer.Exit(EXIT_FINDINGS) from None
        if "diagnostics" not in error.document:
            raise
        for each in error.document["diagnostics"]:
            show(f"{each['shown']}\n")
        raise typer.Exit(EXIT_FINDINGS) from None
    for each in done["warnings"]:
        say(f"{each['shown']}\n", "yellow")
    _tell(done)


def _tell_what_stands(server: Server, name: str, text: str, refused: RequestRefusedError) -> None:
    """Say what a text would have replaced that its author has not seen."""
    current = refused.document.get("current")
    if current is None:
        say(f"`{name}` was deleted meanwhile: `--force` puts it again", "yellow")
        return
    found = server.ask("POST", f"{_path(name)}/difference", content=text.encode(), headers=_PLAIN)
    show(found["unified"].rstrip("\n") or "the texts are equal")
    for each in refused.document["since"] or [current]:
        told = f": {each['note']}" if each["note"] else ""
        say(f"version {each['version']} by {each['author']}, {each['at']}{told}", "yellow")
    say(
        f"`{name}` is not as you have seen it, and nothing was replaced: bring both texts together"
        f" after `ensue rules get {name}`, or replace it with `--force`",
        "yellow",
    )


def _tell(done: dict[str, Any]) -> None:
    state = "runs" if done["enabled"] else "is disabled"
    show(f"{done['name']} version {done['version']} {state}")
    for word in ("kept", "changed", "added", "removed"):
        if done[word]:
            show(f"  {word}: {', '.join(done[word])}")


@app.command("get")
def get(ctx: typer.Context, name: Name) -> None:
    """Print the text of the running version."""
    show(_server(ctx).ask_and_see("GET", _path(name), name)["text"].rstrip("\n"))


@app.command("versions")
def versions(ctx: typer.Context, name: Name) -> None:
    """List the versions of a library, the latest first."""
    for each in _server(ctx).ask("GET", f"{_path(name)}/versions"):
        mark = "*" if each["in_force"] else " "
        show(
            f"{mark} {each['version']:>4}  {each['at']}  {each['author']}  {each['note']}".rstrip()
        )


@app.command("rollback")
def rollback(
    ctx: typer.Context,
    name: Name,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="The version to restore.")],
) -> None:
    """Run an earlier version again."""
    path = f"{_path(name)}/rollback"
    _tell(_server(ctx).ask_and_see("POST", path, name, json={"version": version}))


@app.command("enable")
def enable(ctx: typer.Context, name: Name) -> None:
    """Enable a library; its rules start without state."""
    _tell(_server(ctx).ask_and_see("POST", f"{_path(name)}/enable", name))


@app.command("disable")
def disable(ctx: typer.Context, name: Name) -> None:
    """Disable a library. The state of its rules is dropped."""
    _tell(_server(ctx).ask_and_see("POST", f"{_path(name)}/disable", name))


@app.command("delete")
def delete(ctx: typer.Context, name: Name) -> None:
    """Delete a library. Its versions are kept."""
    _server(ctx).ask_and_see("DELETE", _path(name), name)
    show(f"{name} is deleted")


@app.command("try")
def try_(
    ctx: typer.Context,
    name: Name,
    file: File,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only events from this time on.", show_default=False),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only events before this time.", show_default=False),
    ] = None,
    settings: SetOption = None,
) -> None:
    """Run a text over the server's history.

    Shows how often the rules would have fired, and for which keys.
    """
    body = {"text": _text(file, settings), "since": since, "until": until}
    found = _server(ctx).ask("POST", f"{_path(name)}/dry-run", json=body)
    show(counted(found["outputs"], "output"))
    for each in found["rules"]:
        keys = ", ".join(f"{key or '-'} ({count})" for key, count in each["top_keys"][:8])
        show(f"  {each['rule']}: {each['outputs']} for {counted(each['keys'], 'key')}  {keys}")
    other = found["difference"]
    if other is not None:
        show(
            f"compared with the running version: {other['both']} in both,"
            f" {other['only_new']} more, {other['only_in_force']} fewer"
        )
    if not found["whole"]:
        say(found["why"], "yellow")


@app.command("why")
def why(
    ctx: typer.Context,
    name: Name,
    rule: Annotated[str, typer.Argument(metavar="RULE", help="A rule of the library.")],
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="A key.", show_default=False)
    ] = None,
) -> None:
    """Say why a rule has not fired, for a key or for the keys that came nearest."""
    path = f"{_path(name)}/rules/{quote(rule, safe='')}/why"
    found = _server(ctx).ask("GET", path, params={} if key is None else {"key": key})
    for each in found["reasons"]:
        show(each["text"])
    say(f"from the latest {counted(found['read'], 'event')}", "dim")


def _path(name: str) -> str:
    return f"/v1/libraries/{quote(name, safe='')}"


def _server(ctx: typer.Context) -> Server:
    return Server(*ctx.obj)
