"""The `ensue` command: one file a command, and here what holds for all of them.

Results go to the standard output and nothing else does; messages go to the standard error. Every
command ends with 0 (good), 1 (findings) or 2 (unusable input, or a wrong call), and 130 when the
user stops it. No mistake of a user, and none of ours, is answered with a traceback: `--debug` shows
it to those who want it. A command is imported when it is called (`start.catalogue`).
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from ensue.cli.start import process
from ensue.cli.start.catalogue import ENTRIES, LoadedCommands
from ensue.cli.start.plain_options import read_plainly
from ensue.cli.terminal import EXIT_FINDINGS, EXIT_UNUSABLE, NARROWEST, say, show_findings
from ensue.errors import EnsueError, LibraryError
from ensue.version import __version__

HINTS = {
    errno.EACCES: "choose another place, or have the right to it given to you",
    errno.EISDIR: "give the path of a file",
    errno.ENOENT: "look for a slip in the path, or make the folder that it is to stand in first",
    errno.ENOSPC: "what was written so far is not whole; make room and run it again",
    errno.ENOTDIR: "what stands before the last `/` is a file: look for a slip in the path",
    errno.EROFS: "nothing can be written there; choose another place",
}
"""What to do about the mistakes that the system reports most often."""

_NARROW = 52


class Commands(TyperGroup):
    """Turns whatever a command raises into an answer and an exit code."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        read_plainly(self)
        self.commands = cast(Any, LoadedCommands())

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(ENTRIES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.line) for name, entry in ENTRIES.items()])

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The help of `ensue` itself is written here, before any command is known."""
        columns = shutil.get_terminal_size().columns
        if columns < _NARROW:
            # Help is never made narrower than 50 columns, unless it is told how wide it is.
            options.setdefault("terminal_width", max(columns, NARROWEST))
        try:
            return super().make_context(*arguments, **options)
        except BrokenPipeError:
            raise _reader_is_gone() from None
        except OSError as error:
            _tell(error)
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
            raise _reader_is_gone() from None
        except LibraryError as error:
            show_findings(error.diagnostics, to_stderr=True)
            raise typer.Exit(EXIT_UNUSABLE) from None
        except EnsueError as error:
            say(f"ensue: {error}", "red")
            raise typer.Exit(EXIT_UNUSABLE) from None
        except OSError as error:
            _tell(error)
            raise typer.Exit(EXIT_UNUSABLE) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except MemoryError:
            say("ensue: there is not enough memory for this: give it more, or less to do", "red")
            raise typer.Exit(EXIT_UNUSABLE) from None
        except Exception as error:
            if ctx.params.get("debug") or _is_usage_error(error):
                raise
            say(
                f"ensue: this is a mistake in ensue itself ({type(error).__name__}: {error})\n"
                "  please report it, with what `ensue --debug ...` prints for the same command",
                "red",
            )
            raise typer.Exit(EXIT_UNUSABLE) from None


def _tell(error: OSError) -> None:
    """What the system has refused, and what to do about it."""
    place = f"`{error.filename}`: " if error.filename else ""
    hint = f": {HINTS[error.errno]}" if error.errno in HINTS else ""
    say(f"ensue: {place}{(error.strerror or str(error)).lower()}{hint}", "red")


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


def main(arguments: Sequence[str] | None = None) -> None:
    """The `ensue` command, from arguments or those of the process. Ends by `SystemExit`."""
    for stream in (sys.stdout, sys.stderr):
        # A name in a message may hold a character that the terminal cannot show.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(args=None if arguments is None else list(arguments), prog_name="ensue")


__all__ = ["EXIT_FINDINGS", "EXIT_UNUSABLE", "app", "main"]
