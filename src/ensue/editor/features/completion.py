"""What can be written at a place: keywords that the grammar allows, and names that fit.

The text before the place is read (`ensue.editor.reading`) and the parser is asked what it would
accept; that gives the keywords. Where a name can stand, one is put in and the tree is looked at:
its role there says which names are offered. So no list of places is kept beside the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ensue.editor.mentions import DeclaredName, DefinitionOutline, Mention, outlines
from ensue.editor.project import Project, TypeEntry, above, below
from ensue.editor.reading import TextReader
from ensue.editor.vocabulary import (
    AGGREGATE_TEXTS,
    CONTEXT_TEXTS,
    EXTENSION_TEXTS,
    FUNCTION_TEXTS,
    KEYWORDS,
    OUTSIDE_TEXT,
    UNITS,
    signature,
    words_of,
)
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.parsing import cutting
from ensue.lang.syntax import OUTSIDE

_HERE = "name_to_complete"
_WORD = re.compile(r"[A-Za-z_]\w*\Z")
_NUMBER = re.compile(r"\d+(?:\.\d+)?[ \t]*\Z")
# Comments and texts; one that is still open at the end has a group.
_QUOTED = re.compile(
    r"""(?P<line>//[^\n]*)|/\*[\s\S]*?\*/|(?P<block>/\*[\s\S]*)"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<text>["'](?:\\.|[^\n])*)"""
)
# BETWEEN and the like are written as operators, though they are computed as functions.
_OPERATORS = frozenset({"BETWEEN", "IS_NULL", "MATCHES"})
# A name in these stands for an attribute of the port itself; elsewhere it begins with a port.
_WITH_CONSTANTS = frozenset({"where", "holds", "having", "value"})
_OF_ONE_EVENT = frozenset({"where", "holds", "derived"})

ItemKind = Literal[
    "keyword",
    "type",
    "rule",
    "parameter",
    "port",
    "attribute",
    "label",
    "function",
    "unit",
    "value",
]


@dataclass(frozen=True, slots=True)
class Item:
    label: str
    kind: ItemKind
    detail: str = ""
    text: str = ""
    rank: int = 5
    """Items of a lower rank are shown first."""


def complete(project: Project, path: Path, offset: int) -> list[Item]:
    """What could be written at a place, the likeliest first."""
    document = project.document(path)
    if document is None:
        return []
    written = document.text[:offset]
    word = _WORD.search(written)
    before = written[: word.start()] if word else written
    if _is_in_text_or_comment(before):
        return []
    text = _definition_before(before)
    number = _NUMBER.search(text)
    if number is not None:
        return _units() if "DURATION" in _read(text[: number.start()]).accepted() else []
    reader = _read(text)
    accepted = reader.accepted()
    items = list(_keywords(accepted))
    if "DURATION" in accepted:
        items += [Item(each, "value", "a duration", rank=1) for each in ("10 s", "5 min", "1 h")]
    named = [each for each in ("NAME", "LENGTH_NAME") if each in accepted]
    if named:
        reader.put(named[0], _HERE)
        found = _find_here(list(outlines(reader.finish(), "")))
        if found is not None:
            items += _names(found[0], found[1], project.types(path))
            if found[0].role == "rule" and not found[0].defines:
                if found[0].inside == "from":
                    items.append(Item(OUTSIDE, "keyword", OUTSIDE_TEXT, rank=1))
                items += _others(found[1], project.rules(path), "rule")
            elif found[0].role == "parameter" or found[0].inside in _WITH_CONSTANTS:
                items += _others(found[1], project.parameters(path), "parameter")
    unique = {(each.label, each.kind): each for each in reversed(items)}
    return sorted(unique.values(), key=lambda each: (each.rank, each.label))


def _definition_before(text: str) -> str:
    """The definition that a text ends in, as far as it is written."""
    nesting = DEFAULT_LIMITS.nesting
    pieces = cutting.by_depth(text, nesting)
    if not pieces:
        return text
    parts = list(cutting.by_words(text, pieces[-1], nesting))
    last = parts[-1] if parts else pieces[-1]
    return text[last.start : last.end]


def _read(text: str) -> TextReader:
    reader = TextReader(text)
    reader.read_all()
    if reader.repairs:
        reader = TextReader(text, wary=True)
        reader.read_all()
    return reader


def _is_in_text_or_comment(text: str) -> bool:
    return any(
        found.end() == len(text) and found.lastgroup is not None for found in _QUOTED.finditer(text)
    )


def _keywords(accepted: set[str]) -> Iterator[Item]:
    for terminal in accepted:
        for word in words_of().get(terminal, ()):
            yield Item(word, "keyword", KEYWORDS.get(word.lower(), ""), rank=4)


def _units() -> list[Item]:
    return [Item(unit, "unit", meaning, rank=1) for unit, meaning in UNITS.items()]


def _find_here(found: Sequence[DefinitionOutline]) -> tuple[Mention, DefinitionOutline] | None:
    for outline in found:
        for mention in outline.mentions:
            if _HERE in mention.name.split("."):
                return mention, outline
    return None


def _names(
    mention: Mention, outline: DefinitionOutline, types: Mapping[str, TypeEntry]
) -> Iterator[Item]:
    """The names that can take the role of a mention."""
    if mention.defines:
        return
    match mention.role:
        case "type":
            for name, entry in types.items():
                yield Item(name, "type", _type_detail(entry), rank=2)
        case "label":
            for label in outline.labels:
                yield Item(label.name, "label", f"a label of `{outline.name}`", rank=1)
        case "port":
            yield from _ports(outline)
        case "attribute":
            yield from _attributes(mention, outline, types)
        case "extension":
            for name, text in EXTENSION_TEXTS.items():
                yield Item(name, "attribute", text, rank=1)


def _others(
    outline: DefinitionOutline, names: Mapping[str, Path], kind: Literal["rule", "parameter"]
) -> Iterator[Item]:
    """The rules or parameters that a definition can name."""
    for name, path in names.items():
        if name not in (outline.name, _HERE):
            yield Item(name, kind, f"a {kind}, in {path.name}", rank=1)


def _ports(outline: DefinitionOutline) -> Iterator[Item]:
    for port in outline.members:
        if port.name and port.name != _HERE:
            what = "timer" if port.is_timer else "port"
            yield Item(port.name, "port", f"{what}: {port.type}", rank=1)


def _attributes(
    mention: Mention, outline: DefinitionOutline, types: Mapping[str, TypeEntry]
) -> Iterator[Item]:
    *path, _ = mention.name.split(".")
    inside = mention.inside
    behind_port = bool(mention.types) and inside in ("having", "value")
    if inside in ("having", "value") and not behind_port and not path:
        yield from _ports(outline)
        yield from _functions(aggregates=True)
        return
    start = "".join(f"{each}." for each in path)
    for member, owner in _attributes_of(mention.types, types):
        # What is worked out cannot be set.
        if member.name.startswith(start) and not (member.value and inside == "assignment"):
            detail = f"{member.type}, of {owner}"
            yield Item(member.name[len(start) :], "attribute", detail, rank=1)
    if path or inside == "assignment":
        return
    if inside == "key":
        # `by a.x = b.y` begins with ports.
        yield from _ports(outline)
        return
    for name, text in CONTEXT_TEXTS.items():
        yield Item(name, "attribute", text, rank=3)
    if inside in _OF_ONE_EVENT:
        yield from _functions(aggregates=False)


def _attributes_of(
    names: Sequence[str], types: Mapping[str, TypeEntry]
) -> Iterator[tuple[DeclaredName, str]]:
    """Attributes of types and of those above and below: events of the latter come in too."""
    for name in names:
        for entry in (*above(name, types), *below(name, types)):
            for each in entry.outline.members:
                yield each, entry.outline.name


def _functions(aggregates: bool) -> Iterator[Item]:
    if aggregates:
        for name, text in AGGREGATE_TEXTS.items():
            yield Item(name.lower(), "function", f"{signature(name)}. {text}", rank=2)
    for name, text in FUNCTION_TEXTS.items():
        if name not in _OPERATORS:
            yield Item(name, "function", f"{signature(name)}. {text}", rank=3)


def _type_detail(entry: TypeEntry) -> str:
    above_it = f" : {entry.outline.above}" if entry.outline.above else ""
    return f"eventtype{above_it}, in {entry.path.name}"
