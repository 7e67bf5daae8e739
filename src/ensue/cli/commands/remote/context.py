"""`ensue context`: names of servers, so that commands need no address."""

from __future__ import annotations

from typing import Annotated

import typer

from ensue.cli.terminal import show
from ensue.errors import UsageError
from ensue.remote import DEFAULT_URL, contexts_file, read_contexts, write_contexts

app = typer.Typer(
    name="context",
    help="""Names of servers, for `ensue publish`, `tail`, `rules` and `top`.

    Without a subcommand, the contexts are listed; `*` marks the one in use.

    \b
    Example:
      ensue context set live --server https://ensue.example.org \\
          --token '${env:TOKEN}'
      ensue context use live
    """,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a context.")]


@app.callback(invoke_without_command=True)
def listed(ctx: typer.Context) -> None:
    """Names of servers. Without a subcommand, list them."""
    if ctx.invoked_subcommand is not None:
        return
    found = read_contexts()
    for name, each in sorted(found["context"].items()):
        show(f"{'*' if name == found['in_use'] else ' '} {name}  {each['url']}")
    if not found["context"]:
        show(f"there is no context; commands call {DEFAULT_URL}")


@app.command("set")
def set_(
    name: Name,
    server: Annotated[
        str, typer.Option(metavar="URL", help="The address of the server.")
    ] = DEFAULT_URL,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="REF",
            help="A reference to its token: ${env:NAME} or ${file:PATH}.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Save a server under a name, and use it if it is the first."""
    if not server.startswith(("http://", "https://")):
        raise UsageError(
            f"`--server`: `{server}` is no address of a server: write `https://host:port`"
        )
    if token is not None and not (token.startswith("${") and token.endswith("}")):
        raise UsageError(
            "`--token` takes a reference, since tokens are not stored in the file of contexts:"
            " write `${env:NAME}` or `${file:PATH}`"
        )
    found = read_contexts()
    found["context"][name] = {"url": server, **({"token": token} if token else {})}
    found["in_use"] = found["in_use"] or name
    write_contexts(found)
    show(f"{name} is {server}, in {contexts_file()}")


@app.command("use")
def use(name: Name) -> None:
    """Use a context from now on."""
    found = read_contexts()
    if name not in found["context"]:
        listed = ", ".join(f"`{each}`" for each in sorted(found["context"])) or "none"
        raise UsageError(f"there is no context `{name}`; the contexts are {listed}")
    write_contexts({**found, "in_use": name})
    show(f"{name} is in use")


@app.command("remove")
def remove(name: Name) -> None:
    """Remove a context."""
    found = read_contexts()
    if found["context"].pop(name, None) is None:
        raise UsageError(f"there is no context `{name}`: `ensue context` lists all contexts")
    write_contexts({**found, "in_use": "" if found["in_use"] == name else found["in_use"]})
    show(f"{name} is removed")
