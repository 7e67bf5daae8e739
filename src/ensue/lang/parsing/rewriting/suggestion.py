"""Finds the part of a definition with a mistake, and rewrites it.

A part is rewritten by itself and parsed in a small definition around it, so that mistakes in other
parts do not matter. A long definition is not rewritten: its line would be too long to show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ensue.lang.parsing.cutting import Piece
from ensue.lang.parsing.recovering import PartKind, part_around
from ensue.lang.parsing.rewriting.declarations import (
    rewrite_attribute,
    rewrite_port,
    rewrite_statement,
)
from ensue.lang.parsing.rewriting.habits import Draft
from ensue.lang.parsing.rewriting.heads import rewrite_head

Parses = Callable[[str], bool]
LONGEST_PART = 400
LONGEST_LINE = 120
REASONS_SHOWN = 2


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """The rewriting of a kind of part, and the definition in which its line must parse."""

    rewrite: Callable[[Draft], None]
    around: str


_REWRITINGS: dict[PartKind, _Rewriting] = {
    "attribute": _Rewriting(rewrite_attribute, "eventtype A {{ {} }}"),
    "port": _Rewriting(rewrite_port, "A correlation X ({}) a {{}}"),
    "head": _Rewriting(rewrite_head, "A correlation X (A a) {} {{}}"),
    "statement": _Rewriting(rewrite_statement, "A correlation X (A a) a {{ {} }}"),
}


def suggested_line(text: str, piece: Piece, place: int, parses: Parses) -> str | None:
    """The line to write in place of the part with a mistake, with the reason; None if unknown."""
    part = part_around(text, piece, place)
    if part is None or part.end - part.start > LONGEST_PART:
        return None
    draft = Draft.of(text[part.start : part.end], part.ports)
    before = draft.line()
    rewriting = _REWRITINGS[part.kind]
    rewriting.rewrite(draft)
    line = draft.line()
    if (
        (line == before and not draft.reasons)
        or len(line) > LONGEST_LINE
        or not parses(rewriting.around.format(line))
    ):
        return None
    reasons = "; ".join(draft.reasons[:REASONS_SHOWN])
    return f"write `{line}`" + (f": {reasons}" if reasons else "")
