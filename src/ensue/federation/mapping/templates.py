"""Templates of subjects: `Speed.{city}.{road}`, to take a subject apart and to put one together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PART = re.compile(r"\{(\w[\w.]*)\}")


class Template:
    """A text with names in braces."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names = _PART.findall(text)
        pieces = _PART.split(text)
        if len(set(self.names)) < len(self.names) or any("{" in e or "}" in e for e in pieces[::2]):
            raise ValueError(f"`{text}` is no template: as `Speed.{{city}}`, each name once")
        self.literals = pieces[::2]
        # A name stands for as little as possible, the last one for all that is left.
        pattern = re.escape(self.literals[0]) + "".join(
            f"(.+?){re.escape(each)}" for each in self.literals[1:]
        )
        self._pattern = re.compile(pattern, re.DOTALL)

    def split(self, subject: str) -> dict[str, str] | None:
        """The parts of a subject by name; None if it has another shape."""
        found = self._pattern.fullmatch(subject)
        return None if found is None else dict(zip(self.names, found.groups(), strict=True))

    def join(self, values: Mapping[str, Any]) -> str:
        """The text with values put in. Raises `KeyError` for one that is missing."""
        parts = [self.literals[0]]
        for name, literal in zip(self.names, self.literals[1:], strict=True):
            parts += (as_text(values[name]), literal)
        return "".join(parts)


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
