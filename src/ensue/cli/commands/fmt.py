"""`ensue fmt`: the formatter of libraries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ensue.cli.terminal import EXIT_FINDINGS, counted, say, show
from ensue.configuration.bounded import decoded, read_all, read_text
from ensue.errors import UsageError

STDIN = "-"


def fmt(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="LIB",
            help="Library files (*.cor); - formats the standard input to the standard output.",
            show_default=False,
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; name the files that would change.")
    ] = False,
) -> None:
    """Format libraries; comments are kept.

    The layout has four spaces a level, a clause a line and a case a line. Text that cannot be
    parsed stays as it is, and no rule changes its meaning.

    \b
    Example:
      ensue fmt rules.cor
      ensue fmt --check *.cor

    \b
    Exit codes:
      0  good
      1  --check, and a file would change
      2  a file cannot be read, or a wrong call
    """
    # The grammar takes a moment to load, and `--help` does not need it.
    from ensue.editor.features.formatting import format_text
    from ensue.events.files.output.whole_file import WholeFile

    changed = 0
    for path in files:
        if str(path) == STDIN:
            sys.stdout.write(format_text(_text(path)))
            continue
        before = _text(path)
        after = format_text(before)
        if after == before:
            continue
        changed += 1
        if check:
            show(f"{path} would change")
        else:
            with WholeFile(path) as written:
                written.file.write(after.encode("utf-8"))
    say(f"{counted(changed, 'file')} {'would change' if check else 'changed'}", "dim")
    if check and changed:
        raise typer.Exit(EXIT_FINDINGS)


def _text(path: Path) -> str:
    """The text of a file, with its line ends unchanged."""
    from ensue.events.sources import standard_input
    from ensue.lang.limits import DEFAULT_LIMITS

    most, hint = DEFAULT_LIMITS.bytes, "give a library (*.cor)"
    if str(path) == STDIN:
        return decoded(read_all(standard_input(), most, "<stdin>", hint), "<stdin>")
    if not path.exists():
        raise UsageError(f"there is no file `{path}`: give the path of a library (*.cor)")
    return read_text(path, most, hint)
