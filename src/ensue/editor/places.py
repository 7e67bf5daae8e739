"""Places between an editor and the texts here: lines, columns in the editor's units, and URIs.

An editor counts columns in UTF-16 units unless it has agreed on something else; texts here count
characters. A text that was never saved has a URI without a path, and a path is made up for it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

from lsprotocol import types
from pygls import uris

from ensue.editor.documents import Document

UNSAVED = Path("/unsaved")


def path_of(uri: str) -> Path:
    """The path of a file, or a made-up one for a text that is not saved."""
    if uri.startswith("file:"):
        found = uris.to_fs_path(uri)
        if found is not None:
            return Path(found)
    return UNSAVED / quote(uri, safe="")


def uri_of(path: Path) -> str:
    if path.parent == UNSAVED:
        return unquote(path.name)
    return uris.from_fs_path(str(path)) or path.as_uri()


class PositionUnits:
    """Turns offsets into positions and back, in the units of one editor."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding

    def _units(self, text: str) -> int:
        if text.isascii() or self._encoding == "utf-32":
            return len(text)
        if self._encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    def position(self, document: Document, offset: int) -> types.Position:
        line = document.line_of(offset)
        start = document.line_starts[line]
        return types.Position(line, self._units(document.text[start:offset]))

    def range(self, document: Document, start: int, end: int) -> types.Range:
        return types.Range(self.position(document, start), self.position(document, end))

    def offset(self, document: Document, position: types.Position) -> int:
        """The place of a position; one past the end of its line is at the end."""
        text = document.line_text(position.line)
        if text.isascii():
            return document.offset_of(position.line, position.character)
        units = 0
        for column, character in enumerate(text):
            if units >= position.character:
                return document.offset_of(position.line, column)
            units += self._units(character)
        return document.offset_of(position.line, len(text))
