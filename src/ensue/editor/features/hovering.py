"""What an editor shows of the name or word under the pointer, as Markdown.

Types show their attributes, inherited ones included; ports and labels what they stand for; rules
what `ensue explain` says of them and what a key of theirs costs. Where a library has mistakes,
rules are shown as far as their outline goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensue.editor.checking import check_file
from ensue.editor.documents import FoundMention
from ensue.editor.mentions import DeclaredName, DefinitionOutline
from ensue.editor.project import Project, Referent, TypeEntry, above
from ensue.editor.vocabulary import (
    CONTEXT_TEXTS,
    EXTENSION_TEXTS,
    KEYWORDS,
    function_text,
    signature,
    words_of,
)
from ensue.engine.costs import cost_of
from ensue.errors import LimitError
from ensue.explaining.explanation import Page, explanation, labels_in_words, port_in_words
from ensue.lang.syntax import FilterCorrelation
from ensue.library import Library

# What a rule waits for and does; how each engine runs it is for `ensue explain`.
_LEFT_OUT = ("How it runs", "Its machine", "Between correlations", "Ports")


@dataclass(frozen=True, slots=True)
class Hover:
    text: str
    start: int
    end: int


def hover(project: Project, path: Path, offset: int) -> Hover | None:
    document = project.document(path)
    if document is None:
        return None
    found = document.found_at(offset)
    if found is not None:
        text = _of_mention(project, path, found)
        return None if text is None else Hover(text, found.start, found.end)
    word = document.word_at(offset)
    if word is not None and word.type in words_of():
        name = " ".join(word.text.lower().split())
        if (text := KEYWORDS.get(name)) is not None:
            return Hover(f"**{word.text}**\n\n{text}", word.start, word.end)
    return None


def _of_mention(project: Project, path: Path, found: FoundMention) -> str | None:
    mention, outline = found.mention, found.outline
    types = project.types(path)
    match mention.role:
        case "type":
            entry = types.get(mention.name)
            return None if entry is None else type_text(entry, types)
        case "rule":
            return _rule_text(_library(project, path), outline)
        case "port":
            return _port_text(_library(project, path), outline, mention.name)
        case "label":
            return _label_text(_library(project, path), outline, mention.name)
        case "attribute":
            symbols = project.resolve(path, found, types)
            return (
                _attribute_text(symbols, types)
                or _parameter_text(project, path, mention.name)
                or _context_text(mention.name)
            )
        case "parameter":
            return _parameter_text(project, path, mention.name)
        case "extension":
            text = EXTENSION_TEXTS.get(mention.name)
            return None if text is None else f"**{mention.name}**\n\n{text}"
        case "function":
            text = function_text(mention.name)
            return None if text is None else f"{_code(signature(mention.name))}\n\n{text}"


def _library(project: Project, path: Path) -> Library | None:
    return check_file(project, path).all.library


def _code(text: str) -> str:
    return f"```ensue\n{text}\n```"


def type_text(entry: TypeEntry, types: Mapping[str, TypeEntry]) -> str:
    """The declaration of a type with all attributes that its events have."""
    outline = entry.outline
    wire = f' = "{outline.wire}"' if outline.wire else ""
    parent = f" : {outline.above}" if outline.above else ""
    lines = [f"eventtype {outline.name}{wire}{parent} {{"]
    for each in above(outline.name, types):
        for member in each.outline.members:
            origin = f"  // of {each.outline.name}" if each.outline is not outline else ""
            lines.append(f"    {_declaration(member)}{origin}")
    lines.append("}")
    return f"{_code(chr(10).join(lines))}\n\nDeclared in `{entry.path.name}`."


def _attribute_text(symbols: list[Referent], types: Mapping[str, TypeEntry]) -> str | None:
    lines = []
    for symbol in symbols:
        declared = types[symbol.owner].outline.port(symbol.name)
        if declared is not None:
            lines.append(f"{_declaration(declared)}  // of {symbol.owner}")
    return _code("\n".join(lines)) if lines else None


def _declaration(attribute: DeclaredName) -> str:
    value = f" = {attribute.value}" if attribute.value else ""
    return f"attribute {attribute.type} {attribute.name}{value};"


def _parameter_text(project: Project, path: Path, name: str) -> str | None:
    home = project.parameters(path).get(name)
    document = None if home is None else project.document(home)
    for definition in document.definitions if document is not None else ():
        for outline in definition.outlines:
            if outline.kind == "parameter" and outline.name == name and document is not None:
                line = document.line_text(document.line_of(definition.start + outline.start))
                return f"{_code(line.strip())}\n\nDeclared in `{home.name if home else ''}`."
    return None


def _context_text(name: str) -> str | None:
    text = CONTEXT_TEXTS.get(name.lower())
    return None if text is None else f"**{name}**\n\n{text}"


def _port_text(library: Library | None, outline: DefinitionOutline, name: str) -> str | None:
    declared = outline.port(name)
    if declared is None:
        return None
    head = _code(f"{declared.type} {name}")
    rule = library.correlations[outline.name] if _has(library, outline) and library else None
    port = next((each for each in rule.ports if each.name == name), None) if rule else None
    if library is None or port is None:
        return head
    _, words = port_in_words(library, port)
    return f"{head}\n\nPort of `{outline.name}`: {words}."


def _label_text(library: Library | None, outline: DefinitionOutline, name: str) -> str | None:
    if not any(each.name == name for each in outline.labels):
        return None
    head = _code(f"{name}:")
    if library is None or not _has(library, outline):
        return f"{head}\n\nA label of `{outline.name}`."
    rule = library.correlations[outline.name]
    if isinstance(rule, FilterCorrelation):
        for label, words in labels_in_words(rule):
            if label == name:
                return f"{head}\n\nLabel of `{outline.name}`: {words}."
    return head


def _has(library: Library | None, outline: DefinitionOutline) -> bool:
    return library is not None and outline.name in library.correlations.names


def _rule_text(library: Library | None, outline: DefinitionOutline) -> str:
    ports = ", ".join(f"{each.type} {each.name}" for each in outline.members)
    head = _code(f"{outline.above} {outline.kind} {outline.name} ({ports})")
    if library is None or not _has(library, outline):
        return f"{head}\n\nThe library has mistakes: what the rule does is told once they are gone."
    rule = library.correlations[outline.name]
    lines = list(explanation(library, rule, page=Page(72)))[2:]
    shown = []
    is_shown = True
    for line in lines:
        if line and not line[0].isspace():
            is_shown = not line.startswith(_LEFT_OUT)
        if is_shown:
            shown.append(line)
    words = "\n".join(shown).strip()
    try:
        cost = f"{cost_of(library.checked, rule)}"
    except LimitError as error:
        cost = f"It cannot run: {error}"
    return f"{head}\n\n```text\n{words}\n```\n\n{cost}"
