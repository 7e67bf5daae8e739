"""Files that are read as a whole, up to a bound.

A file that a person names may be a device without an end, or far larger than meant. At most one
byte more than the bound is read; a longer file is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from ensue.errors import UsageError


def read_text(path: str | os.PathLike[str], largest: int, hint: str) -> str:
    """The text of a file. Raises `UsageError`; `hint` says what to do instead."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            return decoded(read_all(file, largest, str(place), hint), str(place))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{place}: cannot be read: {reason}: {hint}") from None
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"{str(place)!r}: cannot be read: {error}: {hint}") from None


def read_all(file: BinaryIO, largest: int, name: str, hint: str) -> bytes:
    """The bytes of an open file, which messages call `name`. Raises `UsageError`."""
    content = file.read(largest + 1)
    if len(content) > largest:
        raise UsageError(
            f"{name}: the file has more than {largest // 1024:,} KiB, which is the most: {hint}"
        )
    return content


def decoded(content: bytes, name: str) -> str:
    """The text that bytes are in UTF-8, line ends kept. Raises `UsageError` with the line."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: the file is not UTF-8") from None
