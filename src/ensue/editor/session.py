"""One editor's folders and open texts, and what it has been told about them.

Texts come in as they are typed; findings go out once nobody types: mistakes at once, what the
analyses of machines find a moment later, from a thread, so that no request waits for them. Answers
are turned over here into what the protocol calls them (`ensue.editor.server` takes the requests).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from ensue.editor.beside import beside
from ensue.editor.checking import checked, source_of, unclear_types
from ensue.editor.documents import Document
from ensue.editor.features import fixes, structure
from ensue.editor.knowing import Knowledge
from ensue.editor.places import PositionUnits, path_of, uri_of
from ensue.editor.project import MentionPlace, Project
from ensue.lang.diagnostics import Diagnostic
from ensue.version import __version__

QUIET_SECONDS = 0.15
"""How long nobody types before a text is checked."""
ANALYSES_AFTER_SECONDS = 0.6
ANALYSES_SECONDS = 3.0
REQUEST_FAILED = -32803

SYMBOL_KINDS = {
    "type": types.SymbolKind.Class,
    "rule": types.SymbolKind.Function,
    "parameter": types.SymbolKind.Constant,
    "attribute": types.SymbolKind.Field,
    "port": types.SymbolKind.Variable,
    "label": types.SymbolKind.EnumMember,
}


class EditorServer(LanguageServer):
    """One editor's folders and open texts."""

    def __init__(self, ontology: Sequence[Path] = ()) -> None:
        super().__init__("ensue", __version__)
        self.project = Project()
        self._ontology = tuple(ontology)
        self.project.knowledge = Knowledge(ontology)
        self.findings: dict[Path, tuple[Diagnostic, ...]] = {}
        self.shows_related = False
        self._waiting: dict[Path, asyncio.Task[None]] = {}
        self._uris: dict[Path, str] = {}

    @property
    def places(self) -> PositionUnits:
        encoding = self.workspace.position_encoding
        return PositionUnits(getattr(encoding, "value", None) or str(encoding or "utf-16"))

    def uri(self, path: Path) -> str:
        """The URI of a file, as the editor spells it where it has opened it."""
        return self._uris.get(path) or uri_of(path)

    def take(self, uri: str) -> None:
        """Take the text of a file from the editor."""
        path = path_of(uri)
        self._uris[path] = uri
        self.project.open(path, self.workspace.get_text_document(uri).source)
        self.changed(path)

    def configure(self, settings: object) -> None:
        """Take files of libraries and of an ontology from settings, but what has another form."""
        if not isinstance(settings, dict):
            return
        files = settings.get("ontology")
        if isinstance(files, list):
            named = [each for each in files if isinstance(each, str) and each]
            found = tuple(self._in_folders(each) for each in named) or self._ontology
            if found != self.project.knowledge.files:
                self.project.knowledge = Knowledge(found)
        given = settings.get("libraries")
        if isinstance(given, list):
            self.project.groups = [
                [each for each in group if isinstance(each, str)]
                for group in given
                if isinstance(group, list)
            ]

    def _in_folders(self, name: str) -> Path:
        """A file by its path from the first folder that has it."""
        tried = [folder / name for folder in self.project.folders] or [Path(name)]
        return next((each for each in tried if each.is_file()), tried[0])

    def read(self, uri: str) -> tuple[Path, Document]:
        """The text of a file as the editor has it. Raises `JsonRpcException` if there is none."""
        path = path_of(uri)
        document = self.project.document(path)
        if document is None:
            raise failed(f"the file `{path}` cannot be read")
        return path, document

    # --- findings --------------------------------------------------------------------------------

    def changed(self, path: Path) -> None:
        """Check a text once nobody types, and the open texts that are read together with it."""
        for each in self.project.opened:
            if each == path or path in self.project.library_of(each):
                self._check_soon(each)

    def forget(self, path: Path) -> None:
        waiting = self._waiting.pop(path, None)
        if waiting is not None:
            waiting.cancel()
        self.findings.pop(path, None)
        self._publish(path, (), None)

    def _check_soon(self, path: Path) -> None:
        waiting = self._waiting.get(path)
        if waiting is not None:
            waiting.cancel()
        self._waiting[path] = asyncio.ensure_future(self._check(path))

    async def _check(self, path: Path) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        source = source_of(self.project, path)
        document = self.project.document(path)
        knowledge = self.project.knowledge
        ontology = await beside(knowledge.ontology)
        if problem := knowledge.take_problem():
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, problem))
        quick = await beside(checked, source, path, ontology)
        self._publish(path, quick.diagnostics, document)
        if quick.all.library is None:
            return
        await asyncio.sleep(ANALYSES_AFTER_SECONDS)
        deep = await beside(checked, source, path, ontology, ANALYSES_SECONDS)
        if deep.diagnostics != quick.diagnostics:
            self._publish(path, deep.diagnostics, document)

    def _publish(
        self, path: Path, found: tuple[Diagnostic, ...], document: Document | None
    ) -> None:
        if document is not None:
            self.findings[path] = found
        uri = self.uri(path)
        shown = [] if document is None else [self.diagnostic(document, each) for each in found]
        if document is not None:
            shown += self._unclear(path, document)
        opened = self.workspace.text_documents.get(uri)
        version = opened.version if opened is not None else None
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=shown, version=version)
        )

    def diagnostic(self, document: Document, found: Diagnostic) -> types.Diagnostic:
        start = document.offset_of_finding(found.line, found.column)
        end = min(start + found.width, len(document.text))
        where = self.places.range(document, start, max(start, end))
        related = None
        message = found.message
        if found.hint and self.shows_related:
            place = types.Location(self.uri(Path(document.name)), where)
            related = [types.DiagnosticRelatedInformation(location=place, message=found.hint)]
        elif found.hint:
            message = f"{message}\n{found.hint}"
        if found.inside is not None:
            # What is wrong in a `use` is so at a place of the text that it uses.
            inside = self._place_of(found.inside)
            if inside is not None and self.shows_related:
                text = "it stands here"
                related = [
                    *(related or []),
                    types.DiagnosticRelatedInformation(location=inside, message=text),
                ]
        return types.Diagnostic(
            range=where,
            message=message,
            severity=types.DiagnosticSeverity.Error
            if found.severity == "error"
            else types.DiagnosticSeverity.Warning,
            code=found.code,
            source="ensue",
            related_information=related,
        )

    def _place_of(self, found: Diagnostic) -> types.Location | None:
        document = self.project.document(Path(found.file))
        if document is None:
            return None
        start = document.offset_of_finding(found.line, found.column)
        where = self.places.range(document, start, start + found.width)
        return types.Location(self.uri(Path(found.file)), where)

    def _unclear(self, path: Path, document: Document) -> Iterable[types.Diagnostic]:
        unclear = unclear_types(self.project, path)
        for found in document.found:
            if found.mention.role == "type" and found.mention.name in unclear:
                yield types.Diagnostic(
                    range=self.places.range(document, found.start, found.end),
                    message=unclear[found.mention.name],
                    severity=types.DiagnosticSeverity.Information,
                    code="unclear-library",
                    source="ensue",
                )

    # --- turning answers over --------------------------------------------------------------------

    def location(self, place: MentionPlace) -> types.Location | None:
        document = self.project.document(place.path)
        if document is None:
            return None
        where = self.places.range(document, place.found.start, place.found.end)
        return types.Location(uri=self.uri(place.path), range=where)

    def locations(self, places: Iterable[MentionPlace]) -> list[types.Location]:
        found = (self.location(each) for each in places)
        return [each for each in found if each is not None]

    def text_edits(self, document: Document, edits: Sequence[fixes.Edit]) -> list[types.TextEdit]:
        return [
            types.TextEdit(self.places.range(document, each.start, each.end), each.text)
            for each in edits
        ]

    def entry(self, document: Document, entry: structure.StructureEntry) -> types.DocumentSymbol:
        return types.DocumentSymbol(
            name=entry.name,
            detail=entry.detail,
            kind=SYMBOL_KINDS[entry.kind],
            range=self.places.range(document, entry.start, entry.end),
            selection_range=self.places.range(document, entry.name_start, entry.name_end),
            children=[self.entry(document, each) for each in entry.inside],
        )


def failed(message: str) -> JsonRpcException:
    return JsonRpcException(message, REQUEST_FAILED)
