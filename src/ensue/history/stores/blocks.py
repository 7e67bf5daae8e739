"""Postings in blocks: one row for publications of a batch that share a key.

In come the numbers of publications under each key; out go rows of `schema.postings`, each with its
last number and, packed, how far the earlier ones lie below it. A row costs SQLite more than all the
bytes in it, and most keys come often. A block is short enough for a page of the database to hold
several, and reaches back less than `REACH`, so that blocks which may hold a number below a bound
are found by their last numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

MOST: Final = 240
"""Numbers in one block, at most."""
REACH: Final = 1 << 14
"""The last number of a block is less than so far above its first."""
LONGEST: Final = 4 * (MOST - 1)
"""Bytes of the packed numbers of a block, at most."""

Row = tuple[bytes, int, bytes]


def rows_of(entries: Mapping[bytes, list[int]]) -> Iterator[Row]:
    """Rows for the numbers under each key, which ascend; in the order of the keys.

    In that order each page of the index is visited once a batch, however large the index is.
    """
    for key in sorted(entries):
        numbers = entries[key]
        if len(numbers) == 1:
            yield key, numbers[0], b""
            continue
        begin = 0
        while begin < len(numbers):
            stop = min(begin + MOST, len(numbers))
            while numbers[stop - 1] - numbers[begin] >= REACH:
                stop -= 1
            yield key, numbers[stop - 1], _packed(numbers[begin:stop])
            begin = stop


def numbers_in(last: int, earlier: bytes) -> list[int]:
    """The numbers of a block, from the last to the first."""
    if not earlier:
        return [last]
    return [last, *(last - each for each in _packing(len(earlier) // 4).unpack(earlier))]


def numbers_of(rows: Iterable[tuple[int, bytes]]) -> set[int]:
    """The numbers of some blocks."""
    return {each for last, earlier in rows for each in numbers_in(last, bytes(earlier))}


def without(last: int, earlier: bytes, gone: set[int]) -> tuple[int, bytes] | None:
    """What is left of a block; None if nothing is."""
    left = [each for each in numbers_in(last, earlier) if each not in gone]
    return (left[0], _packed(left[::-1])) if left else None


def stretches(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Where blocks end that may hold numbers, which ascend: the first and the last possible end."""
    begin = end = numbers[0]
    for each in numbers[1:]:
        if each - end > REACH:
            yield begin, end + REACH
            begin = each
        end = each
    yield begin, end + REACH


def _packed(numbers: list[int]) -> bytes:
    """How far numbers, which ascend, lie below the last of them, the nearest first."""
    last = numbers[-1]
    return _packing(len(numbers) - 1).pack(*[last - each for each in numbers[-2::-1]])


@lru_cache(maxsize=MOST)
def _packing(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}I")
