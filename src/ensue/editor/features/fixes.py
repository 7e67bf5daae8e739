"""Quick fixes: the line that a hint suggests, as a change of the text.

In comes a diagnostic with its hint; out come edits, each tried before it is offered: the library is
checked with it, and it is kept only if the finding is gone and no other mistake has come. So a hint
is never taken for more than it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ensue.editor.checking import checked, source_of
from ensue.editor.documents import Definition, Document
from ensue.editor.project import Project
from ensue.explaining.findings import Findings
from ensue.lang.diagnostics import Diagnostic
from ensue.lang.limits import DEFAULT_LIMITS
from ensue.lang.parsing import cutting
from ensue.lang.parsing.recovering import part_around

_MEANT = re.compile(r"did you mean `([^`]+)`\?")
_DECLARE = re.compile(r"declare it: `([^`]+)`")
_CLAUSE = re.compile(r"write `([^`]+)` and the clause `([^`]+)`")
_WRITE = re.compile(r"(?:write|name the port:) `([^`]+)`")
_NUMBER = re.compile(r"[\d.]+\s*[A-Za-z]*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\s*\.\s*\w+)+")
SYNTAX = "syntax"


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `text` in place of a stretch."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    title: str
    edits: tuple[Edit, ...]


def apply(text: str, edits: tuple[Edit, ...]) -> str:
    """The text with edits that do not overlap."""
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def fixes_for(project: Project, path: Path, finding: Diagnostic) -> list[Fix]:
    """What can be done about a finding by one click; nothing where its hint is only advice."""
    document = project.document(path)
    if document is None or not finding.hint or "..." in finding.hint:
        return []
    ontology = project.knowledge.ontology()
    before = checked(source_of(project, path), path, ontology).all
    for fix in _candidates(document, finding, finding.hint):
        text = apply(document.text, fix.edits)
        after = checked(source_of(project, path, {path: text}), path, ontology).all
        if _is_better(before, after, finding):
            return [fix]
    return []


def keep_wire_name(document: Document, offset: int) -> Fix | None:
    """For the name of an event type: say what its events carry, so that it can be renamed."""
    found = document.found_at(offset)
    if found is None or found.mention.role != "type" or not found.mention.defines:
        return None
    if found.outline.wire is not None:
        return None
    name = found.mention.name
    return Fix(
        f'Keep "{name}" as the name on the wire', (Edit(found.end, found.end, f' = "{name}"'),)
    )


def _is_better(before: Findings, after: Findings, finding: Diagnostic) -> bool:
    fewer = _count(after, finding.code) < _count(before, finding.code)
    if finding.code == SYNTAX:
        # Names are looked at only once a definition can be read: mistakes that were hidden show.
        return fewer
    mended = finding.severity == "error"
    return (
        fewer
        and _errors(after) <= _errors(before) - mended
        and _count(after, SYNTAX) <= _count(before, SYNTAX)
    )


def _count(findings: Findings, code: str) -> int:
    return sum(each.code == code for each in findings.diagnostics)


def _errors(findings: Findings) -> int:
    return sum(each.severity == "error" for each in findings.diagnostics)


def _candidates(document: Document, finding: Diagnostic, hint: str) -> Iterator[Fix]:
    start = document.offset_of_finding(finding.line, finding.column)
    end = min(start + finding.width, len(document.text))
    if declared := _DECLARE.search(hint):
        at = _before_definition(document, start)
        yield Fix(f"Declare `{declared[1]}`", (Edit(at, at, f"{declared[1]}\n"),))
    elif meant := _MEANT.search(hint):
        yield Fix(f"Write `{meant[1]}`", (Edit(start, end, meant[1]),))
        if (word := re.compile(r"\w+").match(document.text, start)) is not None:
            yield Fix(f"Write `{meant[1]}`", (Edit(*word.span(), meant[1]),))
    elif clause := _CLAUSE.search(hint):
        body = _body_of(document, start)
        if body is not None:
            edits = (Edit(start, end, clause[1]), Edit(body, body, f"{clause[2]}\n"))
            yield Fix(f"Write `{clause[1]}` and `{clause[2]}`", edits)
    elif written := _WRITE.search(hint):
        line = written[1]
        title = f"Write `{line}`"
        whole_part = finding.code == SYNTAX
        for stretch in _stretches(document, start, end, whole_part):
            yield Fix(title, (Edit(*stretch, line),))


def _stretches(
    document: Document, start: int, end: int, whole_part: bool
) -> Iterator[tuple[int, int]]:
    """What a suggested line may stand in place of: the part around a mistake, or its words."""
    for piece in cutting.by_depth(document.text, DEFAULT_LIMITS.nesting) if whole_part else ():
        if piece.start <= start <= piece.end:
            for inner in cutting.by_words(document.text, piece, DEFAULT_LIMITS.nesting):
                if inner.start <= start <= inner.end:
                    part = part_around(document.text, inner, start)
                    if part is not None:
                        yield part.start, part.end
    yield start, end
    if (dotted := _DOTTED.match(document.text, start)) is not None:
        yield dotted.span()
    if (number := _NUMBER.match(document.text, start)) is not None:
        yield number.span()
    before = re.compile(r"[\d.]+\s*\Z").search(document.text, 0, start)
    if before is not None:
        yield before.start(), end


def _definition_at(document: Document, offset: int) -> Definition | None:
    within = [each for each in document.definitions if each.start <= offset]
    return within[-1] if within else None


def _before_definition(document: Document, offset: int) -> int:
    """The start of the line on which the definition around a place begins."""
    definition = _definition_at(document, offset)
    words = definition.reading.words if definition is not None else ()
    first = next((each for each in words if each.type != "COMMENT"), None)
    if definition is None or first is None:
        return 0
    return document.line_starts[document.line_of(definition.start + first.start)]


def _body_of(document: Document, offset: int) -> int | None:
    """Where the body of the rule around a place begins."""
    definition = _definition_at(document, offset)
    depth = 0
    for word in definition.reading.words if definition is not None else ():
        if word.type == "LBRACE" and depth == 0 and definition is not None:
            return definition.start + word.start
        depth += (word.text == "(") - (word.text == ")")
    return None
