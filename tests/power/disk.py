"""A folder on a disk that forgets, when the power fails, whatever was not synchronised.

The real files are written as always. Beside them the model notes which bytes of a file had been
synchronised, and which names its folder had when the folder was: that is what `surviving` gives
back. It is strict: a new name lasts only when its folder is synchronised, bytes only with their
file. (Some file systems keep more than they have to.)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class ForgetfulDisk:
    """The files of one folder; what it has when the model is made is on the disk."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._bytes = {path.stat().st_ino: path.read_bytes() for path in self._files()}
        self._names = {path.name: path.stat().st_ino for path in self._files()}
        self.when_something_happens: Callable[[], None] = lambda: None
        """Called after every step that changes what the disk keeps, or may be about to."""
        for name in ("fsync", "fdatasync", "replace", "rename"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def surviving(self) -> dict[str, bytes]:
        """The files that there would be if the power failed now."""
        return {name: self._bytes.get(inode, b"") for name, inode in self._names.items()}

    def _files(self) -> list[Path]:
        return [path for path in self._folder.iterdir() if path.is_file()]

    def _watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            if isinstance(arguments[0], int):
                self._synchronised(arguments[0])
            self.when_something_happens()
            return result

        return watched

    def _synchronised(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if inode == self._folder.stat().st_ino:
            self._names = {path.name: path.stat().st_ino for path in self._files()}
            return
        for path in self._files():
            if path.stat().st_ino == inode:
                self._bytes[inode] = path.read_bytes()
