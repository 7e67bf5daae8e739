"""The bytes of a file in blocks of bounded size, and in whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from ensue.errors import UsageError
from ensue.events.bounds import BOUNDS, Bounds
from ensue.events.files.text.lines import LINE_BREAK, Lines, places_of
from ensue.events.sources.arriving import some_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
    # Whole lines are copied once, when they are put behind what was left of the block before.
    parts: list[bytes | memoryview] = []
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
        if not parts and end == len(block):
            yield block
            continue
        yield b"".join([*parts, memoryview(block)[:end]])
        parts = [block[end:]] if end < len(block) else []
    if parts:
        yield b"".join(parts)


def in_lines(block: bytes, most: int) -> Iterator[tuple[bytes, Lines]]:
    """A block in parts of at most so many lines, with the lines of each."""
    lines = Lines.of(block)
    if lines.total <= most:
        yield block, lines
        return
    begin = 0
    breaks = places_of(LINE_BREAK, np.frombuffer(block, np.uint8))
    for end in [*(breaks[most - 1 :: most] + 1).tolist(), len(block)]:
        if part := block[begin:end]:
            yield part, Lines.of(part)
        begin = end
