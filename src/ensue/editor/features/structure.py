"""What a file holds, for outlines, folding and colours.

Colours go by what a name stands for, which a pattern cannot tell: an attribute called `within` is
no keyword. They are given word by word, as editors want them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ensue.editor.documents import Definition, Document
from ensue.editor.mentions import DeclaredName, DefinitionOutline
from ensue.editor.reading import COMMENT, UNKNOWN
from ensue.editor.vocabulary import words_of

EntryKind = Literal["type", "rule", "parameter", "attribute", "port", "label"]

COLOURS = (
    *("class", "function", "variable", "enumMember", "property", "keyword", "number", "string"),
    *("comment", "operator", "type"),
)
"""The types of semantic tokens, by the names that editors know."""
MODIFIERS = ("declaration", "defaultLibrary")

_ROLES = {
    "type": "class",
    "rule": "function",
    "port": "variable",
    "label": "enumMember",
    "attribute": "property",
    "function": "function",
    "parameter": "variable",
    "extension": "property",
}
_NUMBERS = frozenset({"INTEGER", "REAL", "DURATION", "TIMESTAMP"})
_OPERATORS = frozenset({"COMPARE", "ADDITIVE", "MULTIPLICATIVE", "_MINUS", "PLUS", "VBAR"})
_TYPE_WORDS = frozenset(
    {
        *("SHORT", "LONG", "UNSIGNED", "FLOAT", "DOUBLE", "BOOLEAN", "CHAR", "OCTET"),
        *("STRING_TYPE", "TIMESTAMP_TYPE", "_SEQUENCE"),
    }
)


@dataclass(frozen=True, slots=True)
class StructureEntry:
    """A definition or a part of one: its whole stretch, and that of its name."""

    name: str
    kind: EntryKind
    detail: str
    start: int
    end: int
    name_start: int
    name_end: int
    inside: tuple[StructureEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Colour:
    start: int
    end: int
    type: str
    modifiers: tuple[str, ...] = ()


def entries(document: Document) -> Iterator[StructureEntry]:
    """The definitions of a file with their attributes, ports and labels."""
    for definition in document.definitions:
        for outline in definition.outlines:
            if outline.name and outline.kind != "import":
                yield _entry(definition, outline)


def _entry(definition: Definition, outline: DefinitionOutline) -> StructureEntry:
    at = definition.start
    written = [each for each in definition.reading.words if each.type != COMMENT]
    start = written[0].start if len(definition.outlines) == 1 else outline.start
    end = written[-1].end if len(definition.outlines) == 1 else outline.end
    is_type = outline.kind == "eventtype"
    kind: EntryKind = "type" if is_type else "rule"
    if outline.kind == "parameter":
        kind = "parameter"
    above = f": {outline.above}" if outline.above and is_type else outline.above or ""
    parts = [_part(each, "attribute" if is_type else "port", at) for each in outline.members]
    parts += [_part(each, "label", at) for each in outline.labels]
    return StructureEntry(
        outline.name,
        kind,
        above if is_type else f"{outline.kind} of {above}",
        at + min(start, outline.start),
        at + max(end, outline.end),
        at + outline.start,
        at + outline.end,
        tuple(each for each in parts if each.name),
    )


def _part(declared: DeclaredName, kind: EntryKind, at: int) -> StructureEntry:
    start, end = at + declared.start, at + declared.end
    return StructureEntry(declared.name, kind, declared.type, start, end, start, end)


def folds(document: Document) -> Iterator[tuple[int, int, bool]]:
    """Stretches that can be folded, as first and last line, and whether it is a comment."""
    for entry in entries(document):
        first, last = document.line_of(entry.start), document.line_of(max(entry.end - 1, 0))
        if last > first:
            yield first, last, False
    opened: list[int] = []
    run: list[int] = []
    for word in document.words():
        line = document.line_of(word.start)
        if word.type == COMMENT and word.text.startswith("//"):
            if run and line != run[-1] + 1:
                yield from _run(run)
                run = []
            run.append(line)
        elif word.type == COMMENT and document.line_of(word.end - 1) > line:
            yield line, document.line_of(word.end - 1), True
        elif word.text == "{":
            opened.append(line)
        elif word.text == "}" and opened:
            first = opened.pop()
            # The bracket that closes stays in sight.
            if line - 1 > first:
                yield first, line - 1, False
    yield from _run(run)


def _run(lines: list[int]) -> Iterator[tuple[int, int, bool]]:
    if len(lines) > 1:
        yield lines[0], lines[-1], True


def colours(document: Document) -> Iterator[Colour]:
    """A colour for each word, from top to bottom; words of several lines have none."""
    mentions = iter(document.found)
    mention = next(mentions, None)
    for word in document.words():
        while mention is not None and mention.end <= word.start:
            mention = next(mentions, None)
        if mention is not None and mention.start <= word.start and word.end <= mention.end:
            if word.type == "DOT" or word.text == ".":
                continue
            role = mention.mention.role
            modifiers = ("declaration",) if mention.mention.defines else ()
            if role == "function":
                modifiers = ("defaultLibrary",)
            yield Colour(word.start, word.end, _ROLES[role], modifiers)
            continue
        type_ = _colour(word.type)
        if type_ is not None and "\n" not in word.text:
            yield Colour(word.start, word.end, type_)


def _colour(terminal: str) -> str | None:
    if terminal == COMMENT:
        return "comment"
    if terminal in (UNKNOWN, "NAME"):
        return None
    if terminal == "STRING":
        return "string"
    if terminal in _NUMBERS:
        return "number"
    if terminal in _TYPE_WORDS:
        return "type"
    if terminal in words_of():
        return "keyword"
    return "operator" if terminal in _OPERATORS else None
