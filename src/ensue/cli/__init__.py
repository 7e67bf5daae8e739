"""The `ensue` command: one file a command, and here what holds for all of them.

Results go to the standard output and nothing else does; messages go to the standard error. Every
command ends with 0 (good), 1 (findings) or 2 (unusable input, or a wrong call), and 130 when the
user stops it. No mistake of a user, and none of ours, is answered with a traceback: `--debug` shows
it to those who want it. Heavy imports wait inside the commands that need them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ensue.cli import in_columns
from ensue.cli.commands import (
    bench,
    check,
    compare,
    demo,
    explain,
    fmt,
    history,
    lsp,
    mcp,
    run,
    serve,
    test,
)
from ensue.cli.commands.remote import context, publish, request, rules, tail, top
from ensue.cli.commands.stream import stream as run_stream
from ensue.cli.terminal import EXIT_FINDINGS, EXIT_UNUSABLE, say, show_findings
from ensue.errors import EnsueError, LibraryError
from ensue.version import __version__

HINTS = {
    errno.EACCES: "choose another place, or have the right to it given to you",
    errno.EISDIR: "give the path of a file",
    errno.ENOENT: "make the folder that it is to stand in first, or look for a slip in the path",
    errno.ENOSPC: "what was written so far is not whole; make room and run it again",
    errno.ENOTDIR: "what stands before the last `/` is a file: look for a slip in the path",
    errno.EROFS: "nothing can be written there; choose another place",
}
"""What to do about the mistakes that the system reports most often."""


class Commands(TyperGroup):
    """Turns whatever a command raises into an answer and an exit code."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The help of `ensue` itself is written here, before any command is known."""
        try:
            return super().make_context(*arguments, **options)
        except BrokenPipeError:
            raise _reader_is_gone() from None

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise _reader_is_gone() from None
        except LibraryError as error:
            show_findings(error.diagnostics, to_stderr=True)
            raise typer.Exit(EXIT_UNUSABLE) from None
        except EnsueError as error:
            say(f"ensue: {error}", "red")
            raise typer.Exit(EXIT_UNUSABLE) from None
        except OSError as error:
            place = f"`{error.filename}`: " if error.filename else ""
            hint = f": {HINTS[error.errno]}" if error.errno in HINTS else ""
            say(f"ensue: {place}{(error.strerror or str(error)).lower()}{hint}", "red")
            raise typer.Exit(EXIT_UNUSABLE) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if ctx.params.get("debug") or _is_usage_error(error):
                raise
            say(
                f"ensue: this is a mistake in ensue itself ({type(error).__name__}: {error})\n"
                "  please report it, with what `ensue --debug ...` prints for the same command",
                "red",
            )
            raise typer.Exit(EXIT_UNUSABLE) from None


def _reader_is_gone() -> typer.Exit:
    """The reader of our output has seen enough.

    Python would complain once more when it flushes at its end, so what is left goes nowhere.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return typer.Exit(0)


def _is_usage_error(error: Exception) -> bool:
    """Typer's own complaints about a call, which it answers itself."""
    return hasattr(error, "exit_code") and hasattr(error, "format_message")


app = typer.Typer(
    cls=Commands,
    name="ensue",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    epilog="Exit codes: 0 good, 1 findings, 2 unusable input or a wrong call.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ensue {__version__}")
        raise typer.Exit


@app.callback()
def ensue(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a mistake in ensue itself.")
    ] = False,
) -> None:
    """Find what follows from what: rules over events, with one exact meaning.

    New here? `ensue demo` tells a story in a minute, with nothing to set up.
    """


app.command("check")(check.check)
app.command("run")(run.run)
app.command("explain")(explain.explain)
app.command("compare")(compare.compare_correlations)
app.command("test")(test.run_cases)
app.command("fmt")(fmt.fmt)
app.command("stream")(run_stream)
app.command("serve")(serve.serve)
app.command("publish")(publish.publish)
app.command("tail")(tail.tail)
app.add_typer(rules.app)
app.command("top")(top.top)
app.add_typer(context.app)
app.command("request")(request.request)
app.command("lsp")(lsp.lsp)
app.command("mcp")(mcp.mcp)
app.command("demo")(demo.demo)
app.command("bench")(bench.bench)
app.add_typer(history.app)


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the `ensue` command. Ends the process."""
    in_columns.is_own_process = True
    for stream in (sys.stdout, sys.stderr):
        # A name in a message may hold a character that the terminal cannot show.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(args=None if arguments is None else list(arguments), prog_name="ensue")


__all__ = ["EXIT_FINDINGS", "EXIT_UNUSABLE", "app", "main"]
