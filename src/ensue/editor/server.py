"""The language server: what an editor asks, answered from the project.

Each request of the Language Server Protocol has one function here that turns places and answers
over; what is answered stands in the other modules of this room, and what an editor has open in
`ensue.editor.session`. pygls speaks the protocol, over the standard streams or TCP, and nothing
outside of this room imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types

from ensue.editor.beside import beside
from ensue.editor.documents import Document
from ensue.editor.features import completion, fixes, hovering, renaming, structure
from ensue.editor.features.formatting import format_text
from ensue.editor.places import path_of
from ensue.editor.session import SYMBOL_KINDS, EditorServer, failed
from ensue.errors import UsageError
from ensue.lang.diagnostics import Diagnostic

_COMPLETION_KINDS = {
    "keyword": types.CompletionItemKind.Keyword,
    "type": types.CompletionItemKind.Class,
    "rule": types.CompletionItemKind.Function,
    "parameter": types.CompletionItemKind.Constant,
    "port": types.CompletionItemKind.Variable,
    "attribute": types.CompletionItemKind.Field,
    "label": types.CompletionItemKind.EnumMember,
    "function": types.CompletionItemKind.Function,
    "unit": types.CompletionItemKind.Unit,
    "value": types.CompletionItemKind.Value,
}
LEGEND = types.SemanticTokensLegend(
    token_types=list(structure.COLOURS), token_modifiers=list(structure.MODIFIERS)
)


def editor_server(ontology: Sequence[Path] = ()) -> EditorServer:
    """A server with all that it can be asked; `ontology` are the files of one."""
    server = EditorServer(ontology)
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
    async def hover(ls: EditorServer, params: types.HoverParams) -> types.Hover | None:
        path, document = ls.read(params.text_document.uri)
        offset = ls.places.offset(document, params.position)
        # Of a large library this takes seconds, and other requests are not to wait for it.
        found = await beside(hovering.hover, ls.project, path, offset)
        if found is None:
            return None
        return types.Hover(
            contents=types.MarkupContent(types.MarkupKind.Markdown, found.text),
            range=ls.places.range(document, found.start, found.end),
        )

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(ls: EditorServer, params: types.DefinitionParams) -> list[types.Location]:
        path, document = ls.read(params.text_document.uri)
        offset = ls.places.offset(document, params.position)
        imported = ls.project.imported_at(path, offset)
        if imported is not None:
            start = types.Position(0, 0)
            return [types.Location(ls.uri(imported), types.Range(start, start))]
        at = ls.project.symbols_at(path, offset)
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
                            kind=SYMBOL_KINDS[entry.kind],
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
    async def prepare_rename(ls: EditorServer, params: types.PrepareRenameParams) -> types.Range:
        path, document = ls.read(params.text_document.uri)
        try:
            offset = ls.places.offset(document, params.position)
            found = await beside(renaming.renamable, ls.project, path, offset)
        except UsageError as error:
            raise failed(str(error)) from None
        return ls.places.range(document, found.start, found.end)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(ls: EditorServer, params: types.RenameParams) -> types.WorkspaceEdit:
        path, document = ls.read(params.text_document.uri)
        try:
            offset = ls.places.offset(document, params.position)
            renamed = await beside(renaming.rename, ls.project, path, offset, params.new_name)
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
    async def code_actions(
        ls: EditorServer, params: types.CodeActionParams
    ) -> list[types.CodeAction]:
        path, document = ls.read(params.text_document.uri)
        start = ls.places.offset(document, params.range.start)
        end = ls.places.offset(document, params.range.end)
        found = []
        for finding in ls.findings.get(path, ()):
            at = document.offset_of_finding(finding.line, finding.column)
            if at <= end and start <= at + finding.width:
                fitting = await beside(fixes.fixes_for, ls.project, path, finding)
                found += [
                    _action(ls, document, fix, types.CodeActionKind.QuickFix, finding)
                    for fix in fitting
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
