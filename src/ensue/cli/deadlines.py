"""The option `--deadline` of commands that analyse rules."""

from __future__ import annotations

from typing import Annotated

import typer

from ensue.errors import UsageError
from ensue.library import duration_microseconds

Deadline = Annotated[
    str,
    typer.Option(
        metavar="D",
        help="How long the analyses may take, as 5s or '2 min'. Analyses that have not ended by"
        " then are reported as undecided.",
    ),
]


def seconds_of(text: str) -> float:
    try:
        return duration_microseconds(text) / 1_000_000
    except ValueError as error:
        raise UsageError(f"`--deadline`: {error}") from None
