"""The bytes of a file in blocks of bounded size, and which rows of a block are no UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from ensue.errors import UsageError
from ensue.events.files.chunk import Mask
from ensue.events.kernels.words import count_of
from ensue.events.records import overlong

BLOCK_BYTES = 1 << 23
"""How much of a file is scanned at once. A record that is longer makes its block longer."""

VALUES_AT_ONCE = 1 << 24
"""How many values a chunk has room for. No block has more bytes, and so no more values."""

RECORDS_AT_ONCE = 1 << 19
"""How many records a chunk has at most: each may be refused, and is then kept by itself."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_BREAK = 10


class Blocks:
    """Blocks of a file. What a reader leaves of one comes first in the next."""

    def __init__(self, file: BinaryIO, name: str, size: int = BLOCK_BYTES) -> None:
        self._file = file
        self._name = name
        self._size = size
        self._rest = b""
        self._is_first = True
        self.is_last = False

    def next(self) -> bytes:
        """The next block; empty at the end. `is_last` then says that nothing follows."""
        wanted = self._size
        while True:
            try:
                taken = self._file.read(wanted)
            except OSError as error:
                reason = error.strerror or str(error)
                message = f"`{self._name}` cannot be read: {reason[:1].lower()}{reason[1:]}"
                raise UsageError(message) from None
            self.is_last = not taken
            block = self._rest + taken if self._rest else taken
            self._rest = b""
            if self._is_first and block:
                if len(block) < len(BYTE_ORDER_MARK) and not self.is_last:
                    self._rest = block
                    continue
                self._is_first = False
                block = block.removeprefix(BYTE_ORDER_MARK)
            return block

    def keep(self, rest: bytes) -> None:
        """Have these bytes come first in the next block, which is longer by them."""
        self._rest = rest


def whole_lines(blocks: Blocks) -> Iterator[bytes]:
    """Blocks that end with a line. Of an overlong line only as much is left as tells it."""
    parts: list[bytes] = []
    while True:
        block = blocks.next()
        if not block:
            if blocks.is_last:
                break
            continue
        end = block.rfind(b"\n") + 1
        if end == 0:
            # A line that is longer than a block.
            room = overlong.RECORD_BYTES + 1 - sum(map(len, parts))
            parts += [block[:room]] if room > 0 else []
            continue
        parts.append(block[:end])
        yield parts[0] if len(parts) == 1 else b"".join(parts)
        parts = [block[end:]] if end < len(block) else []
        if parts and not blocks.is_last:
            blocks.keep(parts.pop())
    if parts:
        yield b"".join(parts)


def records_at_once(values: int) -> int:
    """How many records of so many values make a chunk of bounded size."""
    return max(1, min(RECORDS_AT_ONCE, VALUES_AT_ONCE // max(1, values)))


def in_lines(block: bytes, most: int) -> Iterator[bytes]:
    """A block in parts of so many lines."""
    data = np.frombuffer(block, np.uint8)
    # A line has a byte at least, and mostly very many.
    if len(block) <= most or count_of(data, LINE_BREAK) <= most:
        yield block
        return
    begin = 0
    breaks = np.flatnonzero(data == LINE_BREAK)
    for end in (breaks[most - 1 :: most] + 1).tolist():
        yield block[begin:end]
        begin = end
    if begin < len(block):
        yield block[begin:]


def not_utf8(block: bytes, begins: Any, ends: Any, beyond_ascii: Mask) -> Mask:
    """The rows whose bytes are no UTF-8; only those beyond ASCII are looked at."""
    wrong = np.zeros(len(begins), np.bool_)
    if not beyond_ascii.any():
        return wrong
    try:
        block.decode()
    except UnicodeDecodeError:
        for row in np.flatnonzero(beyond_ascii).tolist():
            try:
                block[begins[row] : ends[row]].decode()
            except UnicodeDecodeError:
                wrong[row] = True
    return wrong
