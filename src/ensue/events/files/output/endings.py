"""The format of an output file, by the ending of its name."""

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
"""Formats by the ending of a name. A file with another ending is JSON lines."""


def format_of(path: Path) -> str | None:
    """The format of a file by the ending of its name; None for JSON lines."""
    return FORMATS.get(path.suffix.lower())
