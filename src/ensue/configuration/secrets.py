"""Secrets by reference: what `${env:NAME}` and `${file:PATH}` stand for in a file of settings.

In comes a text; out goes the text with every reference replaced. A secret that cannot be had is
told to the reader of the file, which knows the place; no message shows a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ensue.errors import UsageError

REFERENCE: Final = re.compile(r"\$\{(env|file):([^}]*)\}")
LARGEST_BYTES: Final = 64 * 1024
"""What a file with a secret may have: a path that leads elsewhere is not read without end."""


def replaced(text: str, on_problem: Callable[[str], None]) -> str:
    """A text with secrets put in. One that cannot be had is empty, after `on_problem`."""

    def found(reference: re.Match[str]) -> str:
        try:
            return secret(reference)
        except UsageError as error:
            on_problem(str(error))
            return ""

    return REFERENCE.sub(found, text)


def secret(reference: re.Match[str]) -> str:
    """The text that one reference stands for. Raises `UsageError`."""
    way, name = reference.groups()
    if way == "env":
        if name not in os.environ:
            raise UsageError(f"the environment has no variable `{name}`: set it")
        return os.environ[name]
    try:
        return secret_in(Path(name)).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"the file `{name}` cannot be read: it is no text") from None


def secret_in(place: Path) -> bytes:
    """What a file holds, without blanks around it. Raises `UsageError`."""
    try:
        with place.expanduser().open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the file `{place}` cannot be read: {reason}") from None
    except (ValueError, RuntimeError) as error:
        raise UsageError(f"the file {str(place)!r} cannot be read: {error}") from None
    if len(content) > LARGEST_BYTES:
        raise UsageError(
            f"the file `{place}` has more than {LARGEST_BYTES // 1024} KiB, and holds no secret"
        )
    return content.strip()
