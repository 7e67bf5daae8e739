"""Printing for all commands: messages, findings and colour.

Colour is used only if the stream is a terminal and the user has not set `NO_COLOR`; Rich, which
prints it, is imported only then. A pipe or a file gets plain text.
"""

from __future__ import annotations

import shutil
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from io import BufferedWriter, RawIOBase
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from ensue.lang.diagnostics import Diagnostic

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

EXIT_FINDINGS = 1
EXIT_UNUSABLE = 2

# A message may quote a file, whose control characters must not reach the terminal. Each is replaced
# by one character, so that a caret still points at the right column.
_CONTROLS = dict.fromkeys(
    (
        *(each for each in range(32) if chr(each) not in "\t\n"),
        *range(127, 160),
        # Bidirectional controls and line separators.
        *(0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)),
    ),
    "\N{REPLACEMENT CHARACTER}",
)

WIDEST = 80
"""The longest line of wrapped text, however wide the terminal is."""

NARROWEST = 40

STYLES = {"error": "bold red", "warning": "bold yellow"}


def width(stream: TextIO | None = None, /) -> int:
    """The number of columns for text: those of the terminal, or 80 for a pipe or a file."""
    if not (stream or sys.stdout).isatty():
        return WIDEST
    return min(WIDEST, max(NARROWEST, shutil.get_terminal_size().columns))


@cache
def console(stderr: bool, /) -> Console:
    """The Rich console of the standard output or standard error, also if it is replaced later."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def standard_output() -> BinaryIO:
    """The standard output for bytes. In a notebook, or where it is replaced, it may take text."""
    buffer: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    return BufferedWriter(_TextSink(sys.stdout)) if buffer is None else buffer


class _TextSink(RawIOBase):
    """Bytes of UTF-8 for a stream that takes only text."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = getincrementaldecoder("utf-8")()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(self._decoder.decode(bytes(data)))
        return len(data)

    def flush(self) -> None:
        if not self.closed:
            self._stream.flush()


def say(message: str, style: str = "") -> None:
    """Print a message for the user, on the standard error."""
    _print(message, style, stderr=True)


def show(text: str, style: str = "") -> None:
    """Print a line of the result, on the standard output."""
    _print(text, style, stderr=False)


def _print(text: str, style: str, *, stderr: bool) -> None:
    stream = sys.stderr if stderr else sys.stdout
    text = text.translate(_CONTROLS)
    if stderr:
        # A message that cannot be printed must not stop the work.
        with suppress(OSError):
            _print_to(stream, text, style, stderr=True)
    else:
        _print_to(stream, text, style, stderr=False)


def _print_to(stream: TextIO, text: str, style: str, *, stderr: bool) -> None:
    if style and stream.isatty():
        console(stderr).print(text, style=style)
    elif stderr and stream.isatty():
        # Also through the console, which keeps a progress bar below the message.
        console(stderr).print(text)
    else:
        print(text, file=stream)


def show_findings(findings: Sequence[Diagnostic], *, to_stderr: bool = False) -> None:
    """Print each finding with its place, its line and a caret; then the number of findings."""
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
    """The findings, with each hint only once for a line of a file."""
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
