"""The files of an editor's folders: which form a library, and what the names in them stand for.

A library may be spread over files, and the files do not say so. A file is therefore read together
with the files of its folder that declare event types and rules it mentions and does not declare,
and what those need in turn; where the editor's settings name the files of a library, that holds.
Texts that are open in the editor go before what is on disk. Nothing is checked here
(`ensue.editor.checking`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from ensue.editor.documents import Document, FoundMention
from ensue.editor.knowing import Knowledge
from ensue.editor.mentions import DefinitionOutline, Mention, Role
from ensue.lang.parsing.importing import imports_of

_Name = tuple[Role, str]
"""A name that a file declares or mentions, with what it stands for."""

ENDING = ".cor"
MOST_FILES = 2_000
LARGEST_FILE = 4_000_000
_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Referent:
    """What a name stands for. `owner` is the rule or the type that declares it."""

    role: Role
    path: Path
    owner: str
    name: str


@dataclass(frozen=True, slots=True)
class MentionPlace:
    """A mention in a file."""

    path: Path
    found: FoundMention


@dataclass(frozen=True, slots=True)
class TypeEntry:
    """An event type of a library, and the file that declares it."""

    path: Path
    start: int
    outline: DefinitionOutline


class Project:
    """`groups` are patterns of files that form one library each, relative to the folders."""

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self.groups: list[list[str]] = []
        self.knowledge = Knowledge()
        self._open: dict[Path, Document] = {}
        self._on_disk: dict[Path, tuple[int, Document]] = {}

    # --- texts -----------------------------------------------------------------------------------

    def open(self, path: Path, text: str) -> Document:
        document = Document(str(path), text)
        self._open[path] = document
        return document

    def close(self, path: Path) -> None:
        self._open.pop(path, None)

    @property
    def opened(self) -> Mapping[Path, Document]:
        return self._open

    def document(self, path: Path) -> Document | None:
        """The text of a file, or None if there is none that can be read."""
        if path in self._open:
            return self._open[path]
        try:
            status = path.stat()
            known = self._on_disk.get(path)
            if known is not None and known[0] == status.st_mtime_ns:
                return known[1]
            # A pipe has no size, and to read it would wait for ever.
            if not S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
                return None
            document = Document(str(path), path.read_text("utf-8-sig"))
        except (OSError, ValueError):
            return None
        self._on_disk[path] = (status.st_mtime_ns, document)
        return document

    def files(self) -> list[Path]:
        """All files of libraries under the folders, and all open files."""
        found = set(self._open)
        for folder in self.folders:
            found.update(_under(folder, MOST_FILES - len(found)))
        return sorted(found)

    def beside(self, path: Path) -> list[Path]:
        """The files of libraries in the folder of a file, itself included."""
        found = {each for each in self._open if each.parent == path.parent}
        with suppress(OSError):
            found.update(each for each in path.parent.iterdir() if each.suffix == ENDING)
        return sorted(found | {path})

    # --- libraries -------------------------------------------------------------------------------

    def library_of(self, path: Path) -> tuple[Path, ...]:
        """The files that are read together with a file: what it needs first, itself last."""
        group = self._group_of(path)
        if group is not None:
            return (*(each for each in group if each != path), path)
        imported = self._imported(path)
        if imported:
            # What a file imports is said in it: nothing is guessed.
            return (*(each for each in imported if each != path), path)
        declared = self._declaring(path)
        taken: dict[Path, None] = {}
        waiting = [path]
        while waiting:
            for name in self._missing(waiting.pop()):
                places = declared.get(name, [])
                if len(places) == 1 and places[0] != path and places[0] not in taken:
                    taken[places[0]] = None
                    waiting.append(places[0])
        return (*sorted(taken), path)

    def _imported(self, path: Path) -> list[Path]:
        """The files that a file imports, and those that they import, in the order of reading."""
        found: dict[Path, None] = {}
        waiting = [path]
        while waiting:
            file = waiting.pop()
            document = self.document(file)
            for name, _, _ in imports_of(document.text) if document is not None else ():
                imported = imported_from(file, name)
                if imported not in found and imported != path:
                    found[imported] = None
                    waiting.append(imported)
        return list(found)

    def ambiguous(self, path: Path) -> Mapping[str, Sequence[Path]]:
        """Types that a file lacks, and that several files beside it declare."""
        if self._group_of(path) is not None:
            return {}
        declared = self._declaring(path)
        missing = [each for each in self._missing(path) if each[0] == "type"]
        return {each[1]: declared[each] for each in missing if len(declared.get(each, [])) > 1}

    def _group_of(self, path: Path) -> list[Path] | None:
        for patterns in self.groups:
            files = sorted(
                {
                    each
                    for folder in self.folders
                    for pattern in patterns
                    for each in folder.glob(pattern)
                    if each.is_file()
                }
            )
            if path in files:
                return files
        return None

    def _declaring(self, path: Path) -> dict[_Name, list[Path]]:
        found: dict[_Name, list[Path]] = {}
        for each in self.beside(path):
            for name in self._own_names(each):
                found.setdefault(name, []).append(each)
        return found

    def _own_names(self, path: Path) -> list[_Name]:
        return self._names(path, defined=True)

    def _missing(self, path: Path) -> list[_Name]:
        own = set(self._own_names(path))
        return [each for each in self._names(path, defined=False) if each not in own]

    def _names(self, path: Path, defined: bool) -> list[_Name]:
        """The event types and rules that a file declares, or that it mentions."""
        document = self.document(path)
        mentions = (each.mention for each in (document.found if document is not None else ()))
        return list(
            dict.fromkeys(
                (each.role, each.name)
                for each in mentions
                if each.role in ("type", "rule", "parameter") and each.defines == defined
            )
        )

    def rules(self, path: Path) -> dict[str, Path]:
        """The rules that a file can name, and the files that declare them."""
        return self._declared(path, "rule")

    def parameters(self, path: Path) -> dict[str, Path]:
        """The parameters that a file can name, and the files that declare them."""
        return self._declared(path, "parameter")

    def _declared(self, path: Path, wanted: Role) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for each in reversed(self.library_of(path)):
            for role, name in self._own_names(each):
                if role == wanted:
                    found.setdefault(name, each)
        return found

    def types(self, path: Path) -> dict[str, TypeEntry]:
        """The event types that a file can use, by name."""
        found: dict[str, TypeEntry] = {}
        for each in reversed(self.library_of(path)):
            document = self.document(each)
            for definition in document.definitions if document is not None else ():
                for outline in definition.outlines:
                    if outline.kind == "eventtype" and outline.name:
                        entry = TypeEntry(each, definition.start, outline)
                        found.setdefault(outline.name, entry)
        return found

    # --- names -----------------------------------------------------------------------------------

    def symbols_at(self, path: Path, offset: int) -> tuple[FoundMention, list[Referent]] | None:
        document = self.document(path)
        found = None if document is None else document.found_at(offset)
        return None if found is None else (found, self.resolve(path, found, self.types(path)))

    def resolve(
        self, path: Path, found: FoundMention, types: Mapping[str, TypeEntry]
    ) -> list[Referent]:
        """What a mention stands for: nothing if it is not declared, several where types differ."""
        mention, outline = found.mention, found.outline
        match mention.role:
            case "type":
                entry = types.get(mention.name)
                return [Referent("type", entry.path, "", mention.name)] if entry is not None else []
            case "rule":
                home = path if mention.defines else self.rules(path).get(mention.name)
                return [] if home is None else [Referent("rule", home, "", mention.name)]
            case "port" if outline.kind == "use":
                return self._port_of_used(path, outline, mention.name)
            case "port":
                known = outline.port(mention.name) is not None
                return [Referent("port", path, outline.name, mention.name)] if known else []
            case "label":
                known = any(each.name == mention.name for each in outline.labels)
                return [Referent("label", path, outline.name, mention.name)] if known else []
            case "parameter":
                return self._parameter(path, mention)
            case "attribute":
                # A name in a predicate or a value may be that of a parameter.
                return _declarations(mention, types) or self._parameter(path, mention)
            case "function" | "extension":
                return []

    def _port_of_used(self, path: Path, use: DefinitionOutline, name: str) -> list[Referent]:
        """The port of the rule that is used; a use of a use has the ports of that."""
        rules, seen = self.rules(path), {use.name}
        while use.above is not None and use.above in rules and use.above not in seen:
            seen.add(use.above)
            home = rules[use.above]
            found = self._outline(home, use.above)
            if found is None or found.kind != "use":
                known = found is not None and found.port(name) is not None
                return [Referent("port", home, use.above, name)] if known else []
            use = found
        return []

    def _outline(self, path: Path, name: str) -> DefinitionOutline | None:
        document = self.document(path)
        definitions = document.definitions if document is not None else ()
        outlines = (each for definition in definitions for each in definition.outlines)
        rules = (each for each in outlines if each.kind not in ("eventtype", "parameter", "import"))
        return next((each for each in rules if each.name == name), None)

    def imported_at(self, path: Path, offset: int) -> Path | None:
        """The file that the import at a place names, if it can be read."""
        document = self.document(path)
        for name, start, end in imports_of(document.text) if document is not None else ():
            if start <= offset <= end:
                found = imported_from(path, name)
                return found if self.document(found) is not None else None
        return None

    def _parameter(self, path: Path, mention: Mention) -> list[Referent]:
        home = path if mention.defines else self.parameters(path).get(mention.name)
        return [] if home is None else [Referent("parameter", home, "", mention.name)]

    def definitions(self, symbol: Referent) -> list[MentionPlace]:
        """Where a symbol is declared."""
        document = self.document(symbol.path)
        return [
            MentionPlace(symbol.path, each)
            for each in (document.found if document is not None else ())
            if each.mention.defines
            and (each.mention.role, each.mention.name) == (symbol.role, symbol.name)
            and symbol.owner in ("", each.outline.name)
        ]

    def references(self, symbols: Sequence[Referent]) -> list[MentionPlace]:
        """All mentions of some symbols, their declarations included."""
        wanted = set(symbols)
        return [
            place
            for path in self._readers(symbols)
            for place, stands_for in self._resolved(path)
            if wanted.intersection(stands_for)
        ]

    def linked(self, symbols: Sequence[Referent]) -> list[Referent]:
        """The symbols that share mentions with some, and so must have one name with them.

        `by user` names an attribute of every port at once.
        """
        known = dict.fromkeys(symbols)
        resolved = [
            set(stands_for)
            for path in self._readers(symbols)
            for _, stands_for in self._resolved(path)
            if len(stands_for) > 1
        ]
        grown = True
        while grown:
            before = len(known)
            for together in resolved:
                if not together.isdisjoint(known):
                    known.update(dict.fromkeys(together))
            grown = len(known) > before
        return list(known)

    def _readers(self, symbols: Sequence[Referent]) -> list[Path]:
        """The files in which the symbols can be mentioned."""
        files: dict[Path, None] = {}
        for path in dict.fromkeys(each.path for each in symbols):
            group = self._group_of(path) or self.beside(path)
            files.update(dict.fromkeys(each for each in group if path in self.library_of(each)))
            importing = (each for each in self.files() if path in self._imported(each))
            files.update(dict.fromkeys(importing))
        return list(files)

    def _resolved(self, path: Path) -> Iterator[tuple[MentionPlace, list[Referent]]]:
        document = self.document(path)
        types = self.types(path)
        for found in document.found if document is not None else ():
            yield MentionPlace(path, found), self.resolve(path, found, types)


def imported_from(path: Path, name: str) -> Path:
    """The file that a file imports by a path."""
    return Path(os.path.normpath(path.parent / name))


def above(name: str, types: Mapping[str, TypeEntry]) -> Iterator[TypeEntry]:
    """A type and the types above it; a circle is walked once."""
    seen: set[str] = set()
    at: str | None = name
    while at is not None and at in types and at not in seen:
        seen.add(at)
        yield types[at]
        at = types[at].outline.above


def below(name: str, types: Mapping[str, TypeEntry]) -> Iterator[TypeEntry]:
    """The types below a type."""
    for other, entry in types.items():
        if other != name and any(each.outline.name == name for each in above(other, types)):
            yield entry


def _declarations(mention: Mention, types: Mapping[str, TypeEntry]) -> list[Referent]:
    found: dict[Referent, None] = {}
    for type_ in mention.types:
        chain = [each for each in above(type_, types) if each.outline.port(mention.name)]
        for entry in chain[:1] or [
            each for each in below(type_, types) if each.outline.port(mention.name)
        ]:
            symbol = Referent("attribute", entry.path, entry.outline.name, mention.name)
            found[symbol] = None
    return list(found)


def _under(folder: Path, most: int) -> Iterator[Path]:
    """Files of libraries under a folder; hidden folders and those of packages are left out."""
    waiting = [folder]
    while waiting and most > 0:
        at = waiting.pop()
        try:
            entries = sorted(at.iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            if entry.is_dir() and not entry.is_symlink():
                waiting.append(entry)
            elif entry.suffix == ENDING and most > 0:
                most -= 1
                yield entry
