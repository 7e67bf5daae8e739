"""The bytes of a file in blocks of bounded size, and in whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from ensue.errors import UsageError
from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.sources.arriving import some_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_BREAK = 10


class Blocks:
    """The blocks of a file. Bytes that a reader leaves of one block come first in the next."""

    def __init__(self, file: BinaryIO, name: str, bounds: Bounds = BOUNDS) -> None:
        self._file = file
        self._name = name
        self._size = bounds.block_bytes
        self._rest = b""
        self._is_first = True
        self.is_last = False

    def next(self) -> bytes:
        """The next block, empty at the end; `is_last` then says that no more follows."""
        wanted = self._size
        while True:
            try:
                taken = some_of(self._file, wanted)
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
        """Put bytes before the next block, which is longer by them."""
        self._rest = rest


def whole_lines(blocks: Blocks, bounds: Bounds) -> Iterator[bytes]:
    """Blocks of whole lines. An overlong line is cut, but stays too long (`overlong`)."""
    parts: list[bytes] = []
    while True:
        block = blocks.next()
        if not block:
            if blocks.is_last:
                break
            continue
        end = block.rfind(b"\n") + 1
        if end == 0:
            # The line is longer than a block.
            room = bounds.record_bytes + 1 - sum(map(len, parts))
            parts += [block[:room]] if room > 0 else []
            continue
        parts.append(block[:end])
        yield parts[0] if len(parts) == 1 else b"".join(parts)
        parts = [block[end:]] if end < len(block) else []
        if parts and not blocks.is_last:
            blocks.keep(parts.pop())
    if parts:
        yield b"".join(parts)


def in_lines(block: bytes, most: int) -> Iterator[bytes]:
    """A block in parts of at most so many lines."""
    data = np.frombuffer(block, np.uint8)
    # A line has at least one byte: only a long block needs to be counted.
    if len(block) <= most or np.count_nonzero(data == LINE_BREAK) <= most:
        yield block
        return
    begin = 0
    breaks = np.flatnonzero(data == LINE_BREAK)
    for end in (breaks[most - 1 :: most] + 1).tolist():
        yield block[begin:end]
        begin = end
    if begin < len(block):
        yield block[begin:]
