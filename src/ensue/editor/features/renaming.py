"""Gives a type, a rule, a port, a label or an attribute another name, everywhere it is mentioned.

In come a place and the new name; out come the edits of each file, or a `UsageError` that says what
stands in the way. The renamed texts are read and checked before they are offered: no finding may
come up that was not there before, and the new name must stand for exactly the places that had the
old one, so that it is not caught by another port, and catches no other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ensue.editor.checking import source_of
from ensue.editor.documents import FoundMention
from ensue.editor.features.fixes import Edit, apply
from ensue.editor.project import Project, Referent
from ensue.errors import UsageError
from ensue.explaining.findings import quick_findings

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)

Renamed = Mapping[Path, tuple[Edit, ...]]


def renamable(project: Project, path: Path, offset: int) -> FoundMention:
    """The name at a place, if it can be renamed. Raises `UsageError`."""
    at = project.symbols_at(path, offset)
    if at is None:
        raise UsageError("there is no name here: put the cursor on a type, rule, port or label")
    found, symbols = at
    if not symbols:
        what = f"`{found.mention.name}` is declared nowhere in the library"
        if found.mention.role in ("function", "extension"):
            what = f"`{found.mention.name}` is a function of the language"
        raise UsageError(f"{what}, and only what a library declares can be renamed")
    return found


def rename(project: Project, path: Path, offset: int, name: str) -> Renamed:
    """The edits that give the symbol at a place another name. Raises `UsageError`."""
    found = renamable(project, path, offset)
    _, symbols = project.symbols_at(path, offset) or (found, [])
    role = found.mention.role
    pattern = _DOTTED if role == "attribute" else _NAME
    if not pattern.fullmatch(name):
        allowed = "letters, digits and `_`, and begins with a letter or `_`"
        raise UsageError(f"`{name}` cannot be a name: a name has {allowed}")
    if name == found.mention.name:
        return {}
    symbols = project.linked(symbols)
    places = project.references(symbols)
    _refuse_taken(project, symbols, name)
    edits: dict[Path, list[Edit]] = {}
    for place in places:
        edit = Edit(place.found.start, place.found.end, name)
        edits.setdefault(place.path, []).append(edit)
    renamed = {each: tuple(sorted(set(found), key=_start)) for each, found in edits.items()}
    _refuse_changed_meaning(project, renamed, symbols, name)
    return renamed


def _start(edit: Edit) -> int:
    return edit.start


def _refuse_taken(project: Project, symbols: Sequence[Referent], name: str) -> None:
    """A clash that can be told at once, in words of the person who renames."""
    for symbol in symbols:
        document = project.document(symbol.path)
        for found in document.found if document is not None else ():
            mention = found.mention
            same_place = symbol.owner in ("", found.outline.name)
            taken = mention.defines and mention.role == symbol.role and mention.name == name
            if taken and same_place:
                where = f" in `{symbol.owner}`" if symbol.owner else ""
                line = document.line_of(found.start) + 1 if document is not None else 0
                raise UsageError(
                    f"there is {_article(symbol.role)} `{name}`{where} already, at line {line} of"
                    f" `{symbol.path.name}`: choose another name"
                )


def _article(role: str) -> str:
    return {"attribute": "an attribute", "type": "an event type"}.get(role, f"a {role}")


def _refuse_changed_meaning(
    project: Project, renamed: Renamed, symbols: Sequence[Referent], name: str
) -> None:
    after = _with_edits(project, renamed)
    for path in renamed:
        # Findings about the old name will be made about the new one.
        before, told = (
            Counter((code, _as_before(text, symbols, name)) for code, text in _messages(each, path))
            for each in (project, after)
        )
        for (_, message), count in (told - before).items():
            if count:
                raise UsageError(f"`{name}` cannot be the new name: {message}")
    moved = [Referent(each.role, each.path, each.owner, name) for each in symbols]
    wanted = {(path, _shifted(edits, edit)) for path, edits in renamed.items() for edit in edits}
    got = {(place.path, place.found.start) for place in after.references(moved)}
    if wanted != got:
        raise UsageError(
            f"`{name}` would stand for something else in one of the {len(wanted)} places:"
            " choose a name that is not used there"
        )


def _shifted(edits: Sequence[Edit], edit: Edit) -> int:
    """Where an edit stands once the edits before it are made."""
    before = (each for each in edits if each.start < edit.start)
    return edit.start + sum(len(each.text) - (each.end - each.start) for each in before)


def _messages(project: Project, path: Path) -> list[tuple[str, str]]:
    found = quick_findings(source_of(project, path), project.knowledge.ontology()).diagnostics
    return [(each.code, each.message) for each in found]


def _as_before(text: str, symbols: Sequence[Referent], name: str) -> str:
    """A message about the new name, as it would have been about the old one: `use Old as Two`."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return re.sub(r"`[^`]*`", lambda quoted: word.sub(symbols[0].name, quoted[0]), text)


def _with_edits(project: Project, renamed: Renamed) -> Project:
    """The project as it would be."""
    after = Project()
    after.folders, after.groups = project.folders, project.groups
    after.knowledge = project.knowledge
    for path, opened in project.opened.items():
        after.open(path, opened.text)
    for path, edits in renamed.items():
        document = project.document(path)
        if document is not None:
            after.open(path, apply(document.text, edits))
    return after
