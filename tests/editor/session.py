"""A real client of the language server, over the standard streams of `ensue lsp`.

Texts are written with a mark where the cursor is; answers come back with what stands at their
ranges, so that tests read like what a person sees.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

CURSOR = "¦"
SECONDS = 30.0
Answer = TypeVar("Answer")


class Session:
    """One editor with a folder open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.client = LanguageClient("test", "1")
        self.texts: dict[str, str] = {}
        self.published: dict[str, list[types.PublishDiagnosticsParams]] = {}
        self._news = asyncio.Event()

        def published(params: types.PublishDiagnosticsParams) -> None:
            self.published.setdefault(params.uri, []).append(params)
            self._news.set()

        take: Any = self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        take(published)

    async def start(
        self, options: dict[str, Any] | None = None, encodings: list[str] | None = None
    ) -> types.InitializeResult:
        await self.client.start_io(sys.executable, "-m", "ensue", "lsp")
        result = await self.client.initialize_async(self._hello(options, encodings))
        self.client.initialized(types.InitializedParams())
        return result

    def _hello(
        self, options: dict[str, Any] | None, encodings: list[str] | None
    ) -> types.InitializeParams:
        related = types.PublishDiagnosticsClientCapabilities(related_information=True)
        return types.InitializeParams(
            capabilities=types.ClientCapabilities(
                text_document=types.TextDocumentClientCapabilities(publish_diagnostics=related),
                general=types.GeneralClientCapabilities(position_encodings=encodings)
                if encodings
                else None,
            ),
            workspace_folders=[types.WorkspaceFolder(self.folder.as_uri(), self.folder.name)],
            initialization_options=options,
        )

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        stop: Any = self.client.stop
        await asyncio.wait_for(stop(), SECONDS)

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> types.Position:
        """Open a file; the mark in the text is taken out, and its place given back."""
        plain, position = marked(text)
        self.texts[self.uri(name)] = plain
        item = types.TextDocumentItem(self.uri(name), "ensue", 1, plain)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return position

    def change(self, name: str, text: str) -> types.Position:
        """Type: the whole text at once, as some editors send it."""
        plain, position = marked(text)
        self.texts[self.uri(name)] = plain
        version = types.VersionedTextDocumentIdentifier(version=2, uri=self.uri(name))
        changes = [types.TextDocumentContentChangeWholeDocument(plain)]
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(version, changes))
        return position

    async def diagnostics(
        self, name: str, wanted: Callable[[list[types.Diagnostic]], bool]
    ) -> list[types.Diagnostic]:
        """The findings of a file, once they are as wanted."""
        return await self.diagnostics_of(self.uri(name), wanted)

    async def diagnostics_of(
        self, uri: str, wanted: Callable[[list[types.Diagnostic]], bool]
    ) -> list[types.Diagnostic]:

        async def waiting() -> list[types.Diagnostic]:
            while True:
                news = self.published.get(uri, [])
                if news and wanted(list(news[-1].diagnostics)):
                    return list(news[-1].diagnostics)
                self._news.clear()
                await self._news.wait()

        try:
            return await asyncio.wait_for(waiting(), SECONDS)
        except TimeoutError:
            raise AssertionError(f"findings so far: {self.published.get(uri)}") from None

    def at(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    def shown(self, uri: str, where: types.Range) -> str:
        """The text in a range of a file, columns counted in UTF-16."""
        text = self.texts.get(uri) or Path(uri.removeprefix("file://")).read_text()
        return text[offset(text, where.start) : offset(text, where.end)]

    def edited(self, uri: str, edits: list[types.TextEdit]) -> str:
        text = self.texts.get(uri) or Path(uri.removeprefix("file://")).read_text()
        for edit in sorted(edits, key=lambda each: offset(text, each.range.start), reverse=True):
            start, end = offset(text, edit.range.start), offset(text, edit.range.end)
            text = text[:start] + edit.new_text + text[end:]
        return text


def marked(text: str) -> tuple[str, types.Position]:
    before, _, after = text.partition(CURSOR)
    line = before.count("\n")
    column = len(before.rpartition("\n")[2].encode("utf-16-le")) // 2
    return before + after, types.Position(line, column)


def offset(text: str, position: types.Position) -> int:
    lines = text.split("\n")
    line = lines[position.line].encode("utf-16-le")[: 2 * position.character]
    return sum(len(each) + 1 for each in lines[: position.line]) + len(line.decode("utf-16-le"))


def in_editor(
    folder: Path,
    story: Callable[[Session], Awaitable[Answer]],
    options: dict[str, Any] | None = None,
) -> Answer:
    """Run a story in a fresh editor."""

    async def run() -> Answer:
        session = Session(folder)
        await session.start(options)
        try:
            return await story(session)
        finally:
            await session.stop()

    return asyncio.run(run())
