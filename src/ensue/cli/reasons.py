"""`ensue run --explain`: the reasons of outputs, and what each rule still waits for, on stderr."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence

from ensue.cli.terminal import say, width
from ensue.engine.run import Run
from ensue.events.event import Event

KEYS_SHOWN = 3


def tell_why(run: Run, outputs: Sequence[Event]) -> None:
    """Say why each output came."""
    for output in outputs:
        _tell(str(run.why(output)))


def tell_what_is_missing(run: Run, correlations: Sequence[str]) -> None:
    """Say for each correlation what the keys nearest to their next output wait for."""
    for name in correlations:
        nearest = run.nearest(name, KEYS_SHOWN)
        for each in nearest or [run.why(name)]:
            _tell(str(each))


def _tell(reason: str) -> None:
    """Print a reason; long lines are wrapped on a terminal, and whole in a file."""
    if sys.stderr.isatty():
        reason = "\n".join(_folded(line, width(sys.stderr)) for line in reason.splitlines())
    say(reason, "dim")


def _folded(line: str, columns: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(line, columns, subsequent_indent=indent)
