"""Columns of texts as bytes and offsets, and back: what the compiled loops read and write.

In come Arrow arrays of strings; out go plain arrays for `text_kernels`, and Arrow arrays of what
those have written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ensue.engine.batch import text_kernels


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
        """Texts that somebody keeps, to be read only."""
        return cls(read_only(data), read_only(offsets))

    def take(self, index: Any) -> pa.Array:
        """The texts of these numbers."""
        return written(text_kernels.take_texts, len(index), *self, index)


def read_only(array: Any) -> Any:
    """The same array, which nobody writes to: one kind of array is one compilation."""
    view = array.view()
    view.flags.writeable = False
    return view


def written(loop: Callable[..., Any], count: int, *given: Any) -> pa.Array:
    """So many texts as a loop of `text_kernels` writes them, as an Arrow array."""
    ends: Any = np.empty(count + 1, np.int32)
    data = loop(*given, ends)
    type_ = pa.string()
    if not data.size:
        ends, type_ = np.empty(count + 1, np.int64), pa.large_string()
        data = loop(*given, ends)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data[: int(ends[-1])])]
    return pa.Array.from_buffers(type_, count, buffers)


NO_TEXTS = Texts.held(np.empty(0, np.uint8), np.zeros(1, np.int32))
