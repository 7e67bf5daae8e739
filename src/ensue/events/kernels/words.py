"""Searches over eight bytes of a text at once, as a word of 64 bits (SWAR).

`words_of` has, for each byte of a block, the eight bytes that begin there. `marks_of` and the
searches with it return a word in which the highest bit of the first matching byte is set, and of no
byte before it; the bits of later bytes are meaningless.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.events.kernels.compiling import inner, uncounted

WORD = 8
ONES = np.uint64(0x0101010101010101)
HIGHEST = np.uint64(0x8080808080808080)


def repeated(sign: int) -> np.uint64:
    """A word of eight equal bytes."""
    return ONES * np.uint64(sign)


def words_of(block: bytes | npt.NDArray[np.uint8]) -> Any:
    """For each byte of a block, but for the last seven, the word that begins there."""
    room = block if len(block) >= WORD else bytes(block) + bytes(WORD)
    return np.ndarray((len(room) - WORD + 1,), np.dtype("<u8"), room, 0, (1,))


@inner
def marks_of(word: Any, signs: Any) -> Any:
    """The bytes of a word that equal those of `signs`, by their highest bits."""
    other = word ^ signs
    return (other - ONES) & ~other


@inner
def first_marked(marks: Any) -> Any:
    """The first byte with its highest bit set; there must be one."""
    found = marks & HIGHEST
    before = ((found & (~found + np.uint64(1))) - np.uint64(1)) >> np.uint64(7)
    return np.int64(((before & ONES) * ONES) >> np.uint64(56))


@uncounted
def count_of(data: Any, sign: int) -> int:
    """The number of times that a byte occurs; unlike in `bytes.count`, other threads can run."""
    found = 0
    for place in range(data.size):
        found += data[place] == sign
    return found
