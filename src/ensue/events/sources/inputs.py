"""Input files and the standard input: their formats, and their bytes unpacked.

`open_inputs` reads the first bytes of every named file; `InputFile.open` then returns all bytes of
one file. A pipe, which can be read only once, stays open in between. A file that cannot be opened
is a `UsageError`; compressed bytes that end too early are an `OSError` when they are read.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from ensue.errors import UsageError
from ensue.events.record_ids import labels_of
from ensue.events.sources.arriving import Arriving, ArrivingReader, buffered
from ensue.events.sources.cleaning import cleaned_file
from ensue.events.sources.contents import (
    HEAD_BYTES,
    Content,
    Given,
    check_cells,
    compression_of,
    content_of,
)
from ensue.events.sources.finding import STDIN, find_files
from ensue.events.sources.opening import open_file

PIPE_BYTES = 1 << 30
"""The assumed size of a pipe that is filled faster than it is read."""

_PACKED_TIMES = 8
"""How much larger compressed text is assumed to be when it is unpacked."""

OnBytesRead = Callable[[int], None]
"""Called with the number of bytes that have been read from the disk, before they are unpacked."""


@dataclass(frozen=True)
class InputFile:
    """A file of events.

    `path` is as it was given or found, `-` for the standard input. `name` is the `source` of
    records without one, and `label` the file in ids of records without one. `size` is in bytes on
    the disk, None where it is not known.
    """

    path: str
    content: Content
    compression: str | None = None
    size: int | None = None
    _label: str | None = None
    _opened: BinaryIO | None = field(default=None, repr=False, compare=False)
    _gathered: int | None = field(default=None, repr=False, compare=False)

    @property
    def format(self) -> str:
        return self.content.format

    @property
    def delimiter(self) -> str:
        return self.content.delimiter

    @property
    def header(self) -> tuple[str, ...] | None:
        """The names of the columns of CSV, if the first line does not have them."""
        return self.content.header

    @property
    def nulls(self) -> tuple[str, ...]:
        return self.content.nulls

    @property
    def label(self) -> str:
        return self._label or self.name

    @property
    def name(self) -> str:
        return "stdin" if self.path == STDIN else Path(self.path).name

    @property
    def is_stdin(self) -> bool:
        return self.path == STDIN

    @property
    def known_size(self) -> int:
        """The least number of bytes: for a pipe, the bytes that are in it by now."""
        if self.size is not None or self._opened is None:
            return self.size or 0
        if self._gathered is not None:
            return self._gathered * (_PACKED_TIMES if self.is_packed else 1)
        waiting = len(cast(Any, self._opened).peek(HEAD_BYTES))
        return waiting if waiting < HEAD_BYTES // 2 else PIPE_BYTES

    def gathered(self, most: int, seconds: float | None = None) -> InputFile:
        """The same input; of a pipe so many bytes are waited for, if it does not end before.

        With `seconds` it is waited no longer than that. The pipe is then read as it comes.
        """
        if self.size is not None or self._opened is None:
            return self
        arriving = Arriving(self._opened, most)
        count = arriving.gathered(seconds)
        opened = cast(BinaryIO, ArrivingReader(arriving, HEAD_BYTES))
        return replace(self, _opened=opened, _gathered=count)

    @property
    def is_packed(self) -> bool:
        """Whether a byte on the disk may stand for several bytes of text."""
        return self.compression is not None or self.format == "parquet"

    @property
    def needs_pyarrow(self) -> bool:
        """Whether pyarrow is needed to read its bytes."""
        return self.compression in ("gzip", "zstd") or self.format in ("parquet", "arrow")

    @property
    def is_file(self) -> bool:
        """Whether other readers can open the path: a regular file, not compressed."""
        return self._opened is None and self.compression is None

    def open(self, told: OnBytesRead | None = None) -> BinaryIO:
        """The bytes, unpacked. A pipe can be opened once. Raises `UsageError` on failure."""
        raw = self._opened or open_file(self.path)
        if told is not None:
            raw = buffered(_Watched(raw, told), raw, HEAD_BYTES)
        plain = unpacked(raw, self.compression)
        clean = self.content.clean
        return plain if clean is None else cleaned_file(plain, clean)


def open_inputs(
    paths: Sequence[str],
    format: str | None = None,  # noqa: A002 - the name that users know
    delimiter: str | None = None,
    header: str | None = None,
    nulls: Sequence[str] = (),
) -> list[InputFile]:
    """The files of paths, folders and patterns, each with its format.

    `format`, `delimiter` and `header` (names with commas between them) take precedence over the
    contents of files, and `nulls` are texts that stand for a null. Raises `UsageError` for a path
    without files, a file that cannot be opened, and for a delimiter or a header without a CSV file.
    """
    return inputs_of(paths, Given.of(format, delimiter, header, nulls))


def inputs_of(paths: Sequence[str], given: Given) -> list[InputFile]:
    """As `open_inputs`, by options that have been checked."""
    files = find_files(paths, given.format)
    labels = labels_of(files)
    inputs = [_input(each, given, labels[each]) for each in files]
    check_cells(given, [each.format for each in inputs])
    return inputs


def with_content(inputs: Sequence[InputFile]) -> Sequence[InputFile]:
    """The files that are not empty, or the first file if all are."""
    return [each for each in inputs if each.size != 0] or inputs[:1]


def standard_input() -> BinaryIO:
    """The bytes of the standard input. Raises `UsageError` if the caller has closed it."""
    # Its replacement (`ensue.__main__`) would count as an input without events.
    if sys.__stdin__ is None and sys.stdin.name == os.devnull:
        raise UsageError("the standard input is closed: pipe something into it, or give a file")
    buffer: BinaryIO | None = getattr(sys.stdin, "buffer", None)
    if buffer is None:
        raise UsageError("there is no standard input to read from here: give a file")
    return buffer


def _input(path: str, given: Given, label: str) -> InputFile:
    file = standard_input() if path == STDIN else open_file(path)
    opened: BinaryIO | None = None
    size = None if path == STDIN else size_of(file)
    if size is None:
        opened = _peekable(file)
        head = bytes(cast(Any, opened).peek(HEAD_BYTES))
    else:
        with file:
            head = file.read(HEAD_BYTES)
    compression = compression_of(head)
    plain = _head_unpacked(head, compression)
    if compression is not None and not plain and size is not None:
        # A block of bzip2 is longer than the first bytes that were read.
        with suppress(OSError), unpacked(open_file(path), compression) as whole:
            plain = whole.read(HEAD_BYTES)
    name = "" if path == STDIN else path
    found = content_of(name, plain, given)
    return InputFile(path, found, compression, size, None if path == STDIN else label, opened)


def size_of(file: BinaryIO) -> int | None:
    """The size of a regular file; None for a pipe, a device, or an object in memory."""
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _peekable(file: BinaryIO) -> BinaryIO:
    if hasattr(file, "peek"):
        return file
    return cast(BinaryIO, io.BufferedReader(cast(Any, file), HEAD_BYTES))


def _head_unpacked(head: bytes, compression: str | None) -> bytes:
    """As much of the first bytes as can be unpacked; they may end within a block."""
    if compression == "gzip":
        try:
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, HEAD_BYTES)
        except zlib.error:
            return b""
    if compression is None:
        return head
    try:
        with unpacked(cast(BinaryIO, io.BytesIO(head)), compression) as file:
            return bytes(cast(Any, file).peek(HEAD_BYTES))
    except OSError:
        return b""


def unpacked(file: BinaryIO, compression: str | None) -> BinaryIO:
    """The bytes of a file, unpacked while they are read."""
    if compression is None:
        return file
    return cast(
        BinaryIO, io.BufferedReader(_Unpacked(_stream(file, compression), file), HEAD_BYTES)
    )


def _stream(file: BinaryIO, compression: str) -> Any:
    """An unpacking file object; consecutive compressed members are read as one."""
    if compression == "bz2":
        import bz2

        return bz2.BZ2File(file)
    if compression == "xz":
        import lzma

        return lzma.LZMAFile(file)
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(file, "r"), compression)


class _Unpacked(io.RawIOBase):
    """The bytes of a compressed file, read from front to end."""

    def __init__(self, stream: Any, file: BinaryIO) -> None:
        self._stream = stream
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            found = self._stream.read(len(buffer))
        except _unpacking_errors() as error:
            raise OSError(f"the compressed bytes are damaged, or break off: {error}") from None
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _unpacking_errors() -> tuple[type[Exception], ...]:
    # A module that has not been imported cannot have raised an error.
    lzma, pyarrow = sys.modules.get("lzma"), sys.modules.get("pyarrow")
    found: list[type[Exception]] = [OSError, EOFError]
    found += [] if lzma is None else [lzma.LZMAError]
    found += [] if pyarrow is None else [pyarrow.ArrowException]
    return tuple(found)


class _Watched(io.RawIOBase):
    """A file that reports the number of bytes read from it."""

    def __init__(self, file: BinaryIO, told: OnBytesRead) -> None:
        self._file = file
        self._told = told
        self._taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = cast(Any, self._file).readinto1(buffer)
        self._taken += found
        self._told(self._taken)
        return int(found)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
