"""Atomic writing of a file: it is replaced as a whole, or not at all.

The bytes go to a new file beside the path, which replaces the old file when all bytes are on the
disk. Until then, and after a failure, the old file stays. A pipe or a device is written directly,
and so is a file that is read while it grows.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from ensue.errors import UsageError

_LONGEST_START = 200


class WholeFile:
    """A context manager: `file` replaces the old file at the end, unless there is an error."""

    def __init__(self, path: Path, grows: bool = False) -> None:
        # The target of a link is replaced, not the link.
        self._path = Path(os.path.realpath(path))
        self._beside: Path | None = None
        # The given path is tested: the target of `/dev/stdout` may be a pipe without a path.
        if grows or (path.exists() and not path.is_file()):
            self.file: BinaryIO = io.BufferedWriter(_Opened(path))
            return
        try:
            self._beside, self.file = _opened_beside(self._path)
        except OSError as error:
            # The user has named the path, and not the file beside it.
            error.filename = str(path)
            raise
        if self._path.exists():
            with suppress(OSError):
                os.fchmod(self.file.fileno(), stat.S_IMODE(self._path.stat().st_mode))

    def restart(self) -> None:
        """Discard the bytes written so far."""
        self.file.seek(0)
        self.file.truncate()

    def abandon(self) -> None:
        """Delete the new file, and keep the old one."""
        try:
            # On a full disk, writing the rest fails here once more.
            self.file.close()
        finally:
            if self._beside is not None:
                self._beside.unlink(missing_ok=True)
                self._beside = None

    def keep(self) -> None:
        """Replace the old file."""
        if self.file.closed:
            return
        self.file.flush()
        if self._beside is None:
            self.file.close()
            return
        os.fsync(self.file.fileno())
        self.file.close()
        self._beside.replace(self._path)
        self._beside = None
        _sync_folder(self._path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.keep()
        finally:
            # Nothing is left to abandon after a file was kept.
            with suppress(OSError, UsageError):
                self.abandon()


class _Opened(io.FileIO):
    """A file that is written directly. A broken pipe is reported if the user has named it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb")
        self._path = path

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            if _is_standard_output(self.fileno()):
                raise
            raise UsageError(
                f"`{self._path}`: its reader has left, and what was read there is not whole"
            ) from None


def _is_standard_output(descriptor: int) -> bool:
    """Whether a descriptor is the standard output, whose reader may have stopped reading."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.fstat(1))
    except OSError:
        return False


def _opened_beside(path: Path) -> tuple[Path, BinaryIO]:
    """A new file in the folder of a path; never an existing file or a link."""
    # The length of names is limited in bytes, so that a long name is shortened.
    start = os.fsencode(path.name)[:_LONGEST_START].decode(errors="ignore")
    while True:
        beside = path.with_name(f".{start}.{os.getpid()}-{secrets.token_hex(4)}.part")
        with suppress(FileExistsError):
            return beside, beside.open("x+b")


def _sync_folder(folder: Path) -> None:
    """Write the new name of a file to the disk, where folders can be synced."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
