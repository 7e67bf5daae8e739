"""Which format the ending of a name asks for, of a file that is to be written."""

from __future__ import annotations

from pathlib import Path

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow stream",
}
"""Formats by the ending of a name. Any other is JSON lines."""


def format_of(path: Path) -> str | None:
    """The format that the ending of a name asks for; None for JSON lines."""
    return FORMATS.get(path.suffix.lower())
