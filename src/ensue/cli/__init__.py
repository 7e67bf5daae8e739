"""The `ensue` command. Each command has its own module; this one has what all commands share.

Only results go to the standard output; messages go to the standard error. The exit code of every
command is 0 (good), 1 (findings) or 2 (unusable input or usage), and 130 when the user stops it.
Neither a mistake of the user nor a bug is answered with a traceback, unless `--debug` asks for it.
A command is imported when it is called (`start.catalogue`).
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from ensue.cli.start import process
from ensue.cli.start.catalogue import ENTRIES, LoadedCommands
from ensue.cli.start.plain_options import convert_plainly
from ensue.cli.terminal import EXIT_FINDINGS, EXIT_UNUSABLE, NARROWEST, say, show_findings
from ensue.errors import EnsueError, LibraryError
from ensue.version import __version__

HINTS = {
    errno.EACCES: "choose another path, or ask for the permission",
    errno.EISDIR: "give the path of a file",
    errno.ENOENT: "check the path for a typo, or create its folder first",
    errno.ENOSPC: "the output is incomplete; free some space and run the command again",
    errno.ENOTDIR: "a part of the path is a file and not a folder: check the path for a typo",
    errno.EROFS: "the file system is read-only: choose another path",
}
"""What to do about the most frequent errors of the operating system."""

_NARROW = 52


class Commands(TyperGroup):
    """All commands. Turns every exception of a command into a message and an exit code."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        convert_plainly(self)
        self.commands = cast(Any, LoadedCommands())

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(ENTRIES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.line) for name, entry in ENTRIES.items()])

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments of `ensue` itself, and print its help, before a command is known."""
        columns = shutil.get_terminal_size().columns
        if columns < _NARROW:
            # Typer formats help for at least 50 columns unless a width is given.
            options.setdefault("terminal_width", max(columns, NARROWEST))
        try:
            return super().make_context(*arguments, **options)
        except BrokenPipeError:
            raise _closed_pipe_exit() from None
        except OSError as error:
            _say_system_error(error)
            raise typer.Exit(EXIT_UNUSABLE) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        resolved = super().resolve_command(ctx, args)
        process.work()
        return resolved

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise _closed_pipe_exit() from None
        except LibraryError as error:
            show_findings(error.diagnostics, to_stderr=True)
            raise typer.Exit(EXIT_UNUSABLE) from None
        except EnsueError as error:
            say(f"ensue: {error}", "red")
            raise typer.Exit(EXIT_UNUSABLE) from None
        except OSError as error:
            _say_system_error(error)
            raise typer.Exit(EXIT_UNUSABLE) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except MemoryError:
            say(
                "ensue: there is not enough memory: give the process more, or run it on less data",
                "red",
            )
            raise typer.Exit(EXIT_UNUSABLE) from None
        except Exception as error:
            if ctx.params.get("debug") or _is_usage_error(error):
                raise
            say(
                f"ensue: this is a bug in ensue ({type(error).__name__}: {error})\n"
                "  please report it, with the output of `ensue --debug ...` for the same command",
                "red",
            )
            raise typer.Exit(EXIT_UNUSABLE) from None


def _say_system_error(error: OSError) -> None:
    """Say what the operating system has refused, and what to do about it."""
    place = f"`{error.filename}`: " if error.filename else ""
    hint = f": {HINTS[error.errno]}" if error.errno in HINTS else ""
    say(f"ensue: {place}{(error.strerror or str(error)).lower()}{hint}", "red")


def _closed_pipe_exit() -> typer.Exit:
    """The exit for a standard output whose reader has closed the pipe, as `head` does.

    Python would raise the error again when it flushes at exit, so the rest goes to the null device.
    """
    with suppress(AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return typer.Exit(0)


def _is_usage_error(error: Exception) -> bool:
    """Whether an exception is one of Typer's usage errors, which Typer prints itself."""
    return hasattr(error, "exit_code") and hasattr(error, "format_message")


app = typer.Typer(
    cls=Commands,
    name="ensue",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    epilog="Exit codes: 0 good, 1 findings, 2 unusable input or usage.",
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
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a bug in ensue.")
    ] = False,
) -> None:
    """Find what follows from what: rules over events, with one exact meaning.

    New here? `ensue demo` tells a story in a minute, with nothing to set up.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `ensue` with these arguments, or those of the process. Ends by `SystemExit`."""
    for stream in (sys.stdout, sys.stderr):
        # A message may contain a character that the terminal cannot show.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(args=None if arguments is None else list(arguments), prog_name="ensue")


__all__ = ["EXIT_FINDINGS", "EXIT_UNUSABLE", "app", "main"]
