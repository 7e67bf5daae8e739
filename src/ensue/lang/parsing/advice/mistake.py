"""The place of a mistake in a text, and facts from the text around it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ensue.lang.parsing.cutting import Piece

_LAST_WORD = re.compile(r"(\w+)\s*\Z")
_PORT_LIST = re.compile(r"\b(?:correlation|ecl)\s+\w+\s*\(")
_PORT = re.compile(r"(?:^|,)\s*(?P<type>[A-Za-z_]\w*)\s+(?P<name>[A-Za-z_]\w*)")


LONGEST_HEAD = 2000
"""The most characters that hints read: a text may have megabytes and a hundred mistakes."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What was found at a place, and the terminals and words that are allowed there."""

    text: str
    piece: Piece
    place: int
    found: str
    accepted: frozenset[str]
    words: frozenset[str]

    @property
    def before(self) -> str:
        """The text up to the mistake, as far back as hints read."""
        return self.text[max(self.piece.start, self.place - 100) : self.place]

    @property
    def rest(self) -> str:
        return self.text[self.place : min(self.piece.end, self.place + 100)]

    @property
    def word_before(self) -> str:
        found = _LAST_WORD.search(self.before)
        return found[1] if found else ""

    @property
    def in_filter(self) -> bool:
        return "PLUS" in self.accepted

    @property
    def in_expression(self) -> bool:
        """Whether a value or an operator between values is allowed here."""
        return bool(self.accepted & {"_EXISTS", "LOGIC"})

    @property
    def head(self) -> str:
        """The beginning of the definition, as far as hints read."""
        return self.text[self.piece.start : min(self.place, self.piece.start + LONGEST_HEAD)]

    @property
    def output_type(self) -> str:
        """The output type of the definition, as it is written at its beginning."""
        found = re.match(r"\s*([A-Za-z_]\w*)", self.head)
        return found[1] if found else "Type"

    @property
    def ports(self) -> dict[str, str]:
        """The types of the ports that are declared before the mistake, by their names."""
        written = self.head
        opened = _PORT_LIST.search(written)
        listed = re.split(r"\)[^,)]*\Z", written[opened.end() :], maxsplit=1) if opened else [""]
        return {found["name"]: found["type"] for found in _PORT.finditer(listed[0])}

    @property
    def first_port(self) -> str:
        return next(iter(self.ports), "a")


Advice = Callable[[Mistake], str | None]
