"""The language server: what an editor asks, answered from the project.

Each request of the Language Server Protocol has one function here that turns places and answers
over; what is answered stands in the other modules of this room. Findings are sent as a person
types: mistakes at once, what the analyses of machines find a moment later. pygls speaks the
protocol, over the standard streams or TCP, and nothing else in the package imports it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from ensue.editor import completion, fixes, hovering, renaming, structure
from ensue.editor.checking import checked, source_of, unclear_types
from ensue.editor.documents import Document
from ensue.editor.formatting import format_text
from ensue.editor.places import Places, path_of, uri_of
from ensue.editor.project import Place, Project
from ensue.errors import UsageError
from ensue.lang.diagnostics import Diagnostic
from ensue.version import __version__

QUIET_SECONDS = 0.15
"""How long nobody types before a text is checked."""
ANALYSES_AFTER_SECONDS = 0.6
ANALYSES_SECONDS = 3.0
REQUEST_FAILED = -32803

_COMPLETION_KINDS = {
    "keyword": types.CompletionItemKind.Keyword,
    "type": types.CompletionItemKind.Class,
    "port": types.CompletionItemKind.Variable,
    "attribute": types.CompletionItemKind.Field,
    "label": types.CompletionItemKind.EnumMember,
    "function": types.CompletionItemKind.Function,
    "unit": types.CompletionItemKind.Unit,
    "value": types.CompletionItemKind.Value,
}
_SYMBOL_KINDS = {
    "type": types.SymbolKind.Class,
    "rule": types.SymbolKind.Function,
    "attribute": types.SymbolKind.Field,
    "port": types.SymbolKind.Variable,
    "label": types.SymbolKind.EnumMember,
}
LEGEND = types.SemanticTokensLegend(
    token_types=list(structure.COLOURS), token_modifiers=list(structure.MODIFIERS)
)

logger = logging.getLogger(__name__)


class EditorServer(LanguageServer):
    """One editor's folders and open texts."""

    def __init__(self) -> None:
        super().__init__("ensue", __version__)
        self.project = Project()
        self.findings: dict[Path, tuple[Diagnostic, ...]] = {}
        self.shows_related = False
        self._waiting: dict[Path, asyncio.Task[None]] = {}
        self._uris: dict[Path, str] = {}

    @property
    def places(self) -> Places:
        encoding = self.workspace.position_encoding
        return Places(getattr(encoding, "value", None) or str(encoding or "utf-16"))

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
        """Take the files of libraries from settings; what has another form is left aside."""
        given = settings.get("libraries") if isinstance(settings, dict) else None
        if isinstance(given, list):
            self.project.groups = [
                [each for each in group if isinstance(each, str)]
                for group in given
                if isinstance(group, list)
            ]

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
        quick = await asyncio.to_thread(checked, source, path)
        self._publish(path, quick.diagnostics, document)
        if quick.all.library is None:
            return
        await asyncio.sleep(ANALYSES_AFTER_SECONDS)
        deep = await asyncio.to_thread(checked, source, path, ANALYSES_SECONDS)
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

    def location(self, place: Place) -> types.Location | None:
        document = self.project.document(place.path)
        if document is None:
            return None
        where = self.places.range(document, place.found.start, place.found.end)
        return types.Location(uri=self.uri(place.path), range=where)

    def locations(self, places: Iterable[Place]) -> list[types.Location]:
        found = (self.location(each) for each in places)
        return [each for each in found if each is not None]

    def text_edits(self, document: Document, edits: Sequence[fixes.Edit]) -> list[types.TextEdit]:
        return [
            types.TextEdit(self.places.range(document, each.start, each.end), each.text)
            for each in edits
        ]

    def entry(self, document: Document, entry: structure.Entry) -> types.DocumentSymbol:
        return types.DocumentSymbol(
            name=entry.name,
            detail=entry.detail,
            kind=_SYMBOL_KINDS[entry.kind],
            range=self.places.range(document, entry.start, entry.end),
            selection_range=self.places.range(document, entry.name_start, entry.name_end),
            children=[self.entry(document, each) for each in entry.inside],
        )


def failed(message: str) -> JsonRpcException:
    return JsonRpcException(message, REQUEST_FAILED)


def editor_server() -> EditorServer:
    """A server with all that it can be asked."""
    server = EditorServer()
    _follow_texts(server)
    _answer_names(server)
    _answer_structure(server)
    _answer_changes(server)
    return server


def _follow_texts(server: EditorServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(ls: EditorServer, params: types.InitializeParams) -> None:
        folders = [each.uri for each in params.workspace_folders or ()]
        if not folders and params.root_uri:
            folders = [params.root_uri]
        ls.project.folders = [path_of(each) for each in folders]
        ls.configure(params.initialization_options)
        documents = params.capabilities.text_document
        published = documents.publish_diagnostics if documents is not None else None
        ls.shows_related = bool(published is not None and published.related_information)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(ls: EditorServer, params: types.DidOpenTextDocumentParams) -> None:
        ls.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(ls: EditorServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.take(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(ls: EditorServer, params: types.DidCloseTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        ls.project.close(path)
        ls.forget(path)
        ls.changed(path)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(ls: EditorServer, params: types.DidChangeConfigurationParams) -> None:
        settings: Any = params.settings
        ls.configure(settings.get("ensue", settings) if isinstance(settings, dict) else None)
        _check_all(ls)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def files_changed(ls: EditorServer, _: types.DidChangeWatchedFilesParams) -> None:
        _check_all(ls)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders_changed(
        ls: EditorServer, params: types.DidChangeWorkspaceFoldersParams
    ) -> None:
        gone = {path_of(each.uri) for each in params.event.removed}
        kept = [each for each in ls.project.folders if each not in gone]
        ls.project.folders = kept + [path_of(each.uri) for each in params.event.added]
        _check_all(ls)


def _check_all(ls: EditorServer) -> None:
    for path in ls.project.opened:
        ls.changed(path)


def _answer_names(server: EditorServer) -> None:
    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "(", " "])
    )
    def complete(ls: EditorServer, params: types.CompletionParams) -> types.CompletionList:
        path, document = ls.read(params.text_document.uri)
        offset = ls.places.offset(document, params.position)
        items = [
            types.CompletionItem(
                label=each.label,
                kind=_COMPLETION_KINDS[each.kind],
                detail=each.detail or None,
                insert_text=each.text or None,
                sort_text=f"{each.rank}{each.label}",
            )
            for each in completion.complete(ls.project, path, offset)
        ]
        return types.CompletionList(is_incomplete=False, items=items)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(ls: EditorServer, params: types.HoverParams) -> types.Hover | None:
        path, document = ls.read(params.text_document.uri)
        offset = ls.places.offset(document, params.position)
        found = hovering.hover(ls.project, path, offset)
        if found is None:
            return None
        return types.Hover(
            contents=types.MarkupContent(types.MarkupKind.Markdown, found.text),
            range=ls.places.range(document, found.start, found.end),
        )

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(ls: EditorServer, params: types.DefinitionParams) -> list[types.Location]:
        path, document = ls.read(params.text_document.uri)
        at = ls.project.symbols_at(path, ls.places.offset(document, params.position))
        symbols = at[1] if at else []
        return ls.locations(place for symbol in symbols for place in ls.project.definitions(symbol))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(ls: EditorServer, params: types.ReferenceParams) -> list[types.Location]:
        path, document = ls.read(params.text_document.uri)
        at = ls.project.symbols_at(path, ls.places.offset(document, params.position))
        places = ls.project.references(at[1]) if at else []
        wanted = params.context.include_declaration
        return ls.locations(each for each in places if wanted or not each.found.mention.defines)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(
        ls: EditorServer, params: types.DocumentHighlightParams
    ) -> list[types.DocumentHighlight]:
        path, document = ls.read(params.text_document.uri)
        at = ls.project.symbols_at(path, ls.places.offset(document, params.position))
        places = ls.project.references(at[1]) if at else []
        return [
            types.DocumentHighlight(
                ls.places.range(document, each.found.start, each.found.end),
                types.DocumentHighlightKind.Write
                if each.found.mention.defines
                else types.DocumentHighlightKind.Read,
            )
            for each in places
            if each.path == path
        ]


def _answer_structure(server: EditorServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(ls: EditorServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        _, document = ls.read(params.text_document.uri)
        return [ls.entry(document, each) for each in structure.entries(document)]

    @server.feature(types.WORKSPACE_SYMBOL)
    def all_symbols(
        ls: EditorServer, params: types.WorkspaceSymbolParams
    ) -> list[types.WorkspaceSymbol]:
        asked = params.query.lower()
        found = []
        for path in ls.project.files():
            document = ls.project.document(path)
            for entry in structure.entries(document) if document is not None else ():
                if document is not None and asked in entry.name.lower():
                    where = ls.places.range(document, entry.name_start, entry.name_end)
                    found.append(
                        types.WorkspaceSymbol(
                            location=types.Location(ls.uri(path), where),
                            name=entry.name,
                            kind=_SYMBOL_KINDS[entry.kind],
                            container_name=path.name,
                        )
                    )
        return found

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding(ls: EditorServer, params: types.FoldingRangeParams) -> list[types.FoldingRange]:
        _, document = ls.read(params.text_document.uri)
        return [
            types.FoldingRange(
                start_line=first,
                end_line=last,
                kind=types.FoldingRangeKind.Comment if is_comment else None,
            )
            for first, last, is_comment in dict.fromkeys(structure.folds(document))
        ]

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    def tokens(ls: EditorServer, params: types.SemanticTokensParams) -> types.SemanticTokens:
        _, document = ls.read(params.text_document.uri)
        data: list[int] = []
        before = types.Position(0, 0)
        for each in structure.colours(document):
            at = ls.places.position(document, each.start)
            end = ls.places.position(document, each.end)
            same_line = at.line == before.line
            modifiers = sum(1 << structure.MODIFIERS.index(name) for name in each.modifiers)
            data += [
                at.line - before.line,
                at.character - (before.character if same_line else 0),
                end.character - at.character,
                structure.COLOURS.index(each.type),
                modifiers,
            ]
            before = at
        return types.SemanticTokens(data=data)


def _answer_changes(server: EditorServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(
        ls: EditorServer, params: types.DocumentFormattingParams
    ) -> list[types.TextEdit]:
        _, document = ls.read(params.text_document.uri)
        laid_out = format_text(document.text)
        if laid_out == document.text:
            return []
        return ls.text_edits(document, [fixes.Edit(0, len(document.text), laid_out)])

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(ls: EditorServer, params: types.PrepareRenameParams) -> types.Range:
        path, document = ls.read(params.text_document.uri)
        try:
            offset = ls.places.offset(document, params.position)
            found = renaming.renamable(ls.project, path, offset)
        except UsageError as error:
            raise failed(str(error)) from None
        return ls.places.range(document, found.start, found.end)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(ls: EditorServer, params: types.RenameParams) -> types.WorkspaceEdit:
        path, document = ls.read(params.text_document.uri)
        try:
            offset = ls.places.offset(document, params.position)
            renamed = renaming.rename(ls.project, path, offset, params.new_name)
        except UsageError as error:
            raise failed(str(error)) from None
        changes = {}
        for each, edits in renamed.items():
            uri = ls.uri(each)
            _, changed = ls.read(uri)
            changes[uri] = ls.text_edits(changed, edits)
        return types.WorkspaceEdit(changes=changes)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            code_action_kinds=[
                types.CodeActionKind.QuickFix,
                types.CodeActionKind.RefactorRewrite,
            ]
        ),
    )
    def code_actions(ls: EditorServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        path, document = ls.read(params.text_document.uri)
        start = ls.places.offset(document, params.range.start)
        end = ls.places.offset(document, params.range.end)
        found = []
        for finding in ls.findings.get(path, ()):
            at = document.offset_of_finding(finding.line, finding.column)
            if at <= end and start <= at + finding.width:
                found += [
                    _action(ls, document, fix, types.CodeActionKind.QuickFix, finding)
                    for fix in fixes.fixes_for(ls.project, path, finding)
                ]
        wire = fixes.keep_wire_name(document, start)
        if wire is not None:
            found.append(_action(ls, document, wire, types.CodeActionKind.RefactorRewrite))
        return found


def _action(
    ls: EditorServer,
    document: Document,
    fix: fixes.Fix,
    kind: types.CodeActionKind,
    finding: Diagnostic | None = None,
) -> types.CodeAction:
    uri = ls.uri(Path(document.name))
    return types.CodeAction(
        title=fix.title,
        kind=kind,
        diagnostics=None if finding is None else [ls.diagnostic(document, finding)],
        edit=types.WorkspaceEdit(changes={uri: ls.text_edits(document, fix.edits)}),
        is_preferred=finding is not None or None,
    )
