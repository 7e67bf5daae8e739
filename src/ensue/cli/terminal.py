"""How all commands print: messages, findings, colour where it is wanted.

Colour and other terminal tricks are used only if the stream is a terminal and the user has not set
`NO_COLOR`; Rich, which does them, is imported only then. A pipe or a file gets plain text.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TextIO

from ensue.lang.diagnostics import Diagnostic

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

EXIT_FINDINGS = 1
EXIT_UNUSABLE = 2

# What a file holds may end up in a message; its control characters must not steer a terminal.
# One sign stands for each, so that a caret still points where it should.
_CONTROLS = dict.fromkeys(
    (
        *(each for each in range(32) if chr(each) not in "\t\n"),
        *range(127, 160),
        # Controls of direction, and separators of lines.
        *(0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)),
    ),
    "\N{REPLACEMENT CHARACTER}",
)

WIDEST = 80
"""Longer lines are hard to read, however wide the terminal is."""

NARROWEST = 40

STYLES = {"error": "bold red", "warning": "bold yellow"}


def width(stream: TextIO | None = None, /) -> int:
    """The columns that a text may fill: those of the terminal, and 80 in a pipe or a file."""
    if not (stream or sys.stdout).isatty():
        return WIDEST
    return min(WIDEST, max(NARROWEST, shutil.get_terminal_size().columns))


@cache
def console(stderr: bool, /) -> Console:
    """The console of one of our streams; it follows the stream if that is replaced."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(message: str, style: str = "") -> None:
    """A message to the person, on the standard error."""
    _print(message, style, stderr=True)


def show(text: str, style: str = "") -> None:
    """A line of a result, on the standard output."""
    _print(text, style, stderr=False)


def _print(text: str, style: str, *, stderr: bool) -> None:
    stream = sys.stderr if stderr else sys.stdout
    text = text.translate(_CONTROLS)
    if stderr:
        # A message that cannot be delivered must not stop the work that it tells of.
        with suppress(OSError):
            _print_to(stream, text, style, stderr=True)
    else:
        _print_to(stream, text, style, stderr=False)


def _print_to(stream: TextIO, text: str, style: str, *, stderr: bool) -> None:
    if style and stream.isatty():
        console(stderr).print(text, style=style)
    elif stderr and stream.isatty():
        # Through the console all the same, which keeps a progress bar below the message.
        console(stderr).print(text)
    else:
        print(text, file=stream)


def show_findings(findings: Sequence[Diagnostic], *, to_stderr: bool = False) -> None:
    """Each finding with its place, its line and a caret; then how many there are."""
    stream = sys.stderr if to_stderr else sys.stdout
    for finding in _without_repeated_hints(findings):
        if stream.isatty():
            console(to_stderr).print(_coloured(finding))
        else:
            print(str(finding).translate(_CONTROLS), file=stream)
        print(file=stream)
    if findings:
        worst = "error" if any(each.severity == "error" for each in findings) else "warning"
        _print(findings_summary(findings), STYLES[worst], stderr=to_stderr)


def _without_repeated_hints(findings: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """The findings, each hint only once for a line."""
    said: set[tuple[str, int, str | None]] = set()
    for finding in findings:
        hint = finding.file, finding.line, finding.hint
        yield replace(finding, hint=None) if hint in said else finding
        said.add(hint)


def _coloured(finding: Diagnostic) -> Text:
    from rich.text import Text

    style = STYLES[finding.severity]
    head, line, marks, *hints = str(finding).translate(_CONTROLS).split("\n")
    place, _, message = head.partition(f" {finding.severity}: ")
    margin, bar, caret = marks.partition("|")
    text = Text.assemble(
        (place, "bold"), " ", (f"{finding.severity}:", style), f" {message}\n{line}\n"
    )
    text.append(margin + bar).append(caret, style)
    for hint in hints:
        text.append(f"\n{hint}", "cyan")
    return text


def findings_summary(findings: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning in 1 file`."""
    found = list(findings)
    errors = sum(each.severity == "error" for each in found)
    parts = [counted(errors, "error")] if errors else []
    if len(found) > errors:
        parts.append(counted(len(found) - errors, "warning"))
    return f"{', '.join(parts)} in {counted(len({each.file for each in found}), 'file')}"


def counted(number: int, noun: str) -> str:
    """`1 event`, `1,200 events`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in backticks; if there are many, the first ones and how many more."""
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
