"""Columns of texts as bytes and offsets, and back: what the compiled loops read and write.

In come Arrow arrays of strings; out go plain arrays for `text_writing`, and Arrow arrays of what
those have written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ensue.engine.batch.kernels import text_writing

LARGEST_OFFSET = 2**31 - 1
_LONGEST_KEPT, _LONGEST_KEPT_TEXT = 1 << 18, 32
_MORE_THAN_EXPECTED, _FIRST_BYTES = 1.125, 256


class Texts(NamedTuple):
    """`data[offsets[n]:offsets[n + 1]]` is the text of number n."""

    data: Any
    offsets: Any

    @classmethod
    def of(cls, array: pa.Array) -> Texts:
        """The bytes and offsets of a string array, its own offset taken into account."""
        if not len(array):
            return NO_TEXTS
        _, offsets, data = array.buffers()
        width: Any = np.int64 if pa.types.is_large_string(array.type) else np.int32
        begin = array.offset
        ends = np.frombuffer(offsets, width)[begin : begin + len(array) + 1]
        held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return cls(read_only(held), read_only(ends))

    @classmethod
    def held(cls, data: Any, offsets: Any) -> Texts:
        """Texts of which another owner keeps the bytes; read-only."""
        return cls(read_only(data), read_only(offsets))

    def take(self, index: Any) -> pa.Array:
        """The texts of these numbers."""
        return written(text_writing.take_texts, len(index), self.mean, self, index)

    @property
    def mean(self) -> float:
        """How many bytes a text has, on average."""
        return int(self.offsets[-1] - self.offsets[0]) / max(1, len(self.offsets) - 1)


def read_only(array: Any) -> Any:
    """The array, marked read-only: arrays of one kind need one compilation."""
    view = array.view()
    view.flags.writeable = False
    return view


def constant(text: str, count: int) -> pa.Array:
    """An array of one text, repeated. Arrays of short texts are cached, and cut to length."""
    if count > _LONGEST_KEPT or len(text) > _LONGEST_KEPT_TEXT:
        return pa.repeat(pa.scalar(text), count)
    return _repeated(text, max(1024, 1 << (count - 1).bit_length()))[:count]


@lru_cache(maxsize=8)
def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)


def written(loop: Callable[..., int], count: int, room: float, *given: Any) -> pa.Array:
    """So many texts as a loop of `text_writing` writes them, as an Arrow array.

    `room` is how many bytes a text is expected to have.
    """
    found = written_if_there(loop, count, room, *given)
    assert found is not None, "this loop has all that it asks for"
    return found


def written_if_there(
    loop: Callable[..., int], count: int, room: float, *given: Any
) -> pa.Array | None:
    """As `written`; None if the loop lacks a text that it needs."""
    out: Any = np.empty(int(count * room * _MORE_THAN_EXPECTED) + _FIRST_BYTES, np.uint8)
    ends: Any = np.zeros(count + 1, np.int32)
    row = 0
    while True:
        if len(out) > LARGEST_OFFSET:
            ends = ends.astype(np.int64)
        row = loop(*given, row, out, ends)
        if row < 0:
            return None
        if row == count:
            break
        used = int(ends[row])
        larger = np.empty(2 * len(out), np.uint8)
        larger[:used] = out[:used]
        out = larger
    used = int(ends[-1])
    type_ = pa.string()
    if used > LARGEST_OFFSET:
        type_ = pa.large_string()
    else:
        ends = ends.astype(np.int32, copy=False)
    # What was not needed is given back.
    out.resize(used, refcheck=False)
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(ends), pa.py_buffer(out)])


NO_TEXTS = Texts.held(np.empty(0, np.uint8), np.zeros(1, np.int32))
