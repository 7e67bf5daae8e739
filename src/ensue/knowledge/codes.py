"""Sets of concept codes.

Codes are given so that what lies below a concept is mostly one run of numbers (`classification`).
A set is kept as the bounds of its runs, `(0, 4, 9, 10)` for 0 to 3 and 9. Whether a code is in it
is one bisection, for one code as for an array of them: it is inside where an odd number of bounds
is at or below it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

UNKNOWN = -1
"""The code of a text that names no concept. It is in no set."""

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class CodeSet:
    """A set of codes; `bounds` are the first code of each run and one past its last, ascending."""

    bounds: tuple[int, ...] = ()

    @classmethod
    def of(cls, codes: Iterable[int]) -> CodeSet:
        bounds: list[int] = []
        for code in sorted(set(codes)):
            if bounds and bounds[-1] == code:
                bounds[-1] = code + 1
            else:
                bounds += (code, code + 1)
        return cls(tuple(bounds))

    def __contains__(self, code: object) -> bool:
        return isinstance(code, int) and bisect_right(self.bounds, code) % 2 == 1

    def contains(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Of each code, whether it is in the set."""
        bounds = np.asarray(self.bounds, dtype=np.int32)
        return np.asarray(np.searchsorted(bounds, codes, side="right") % 2 == 1)

    def __iter__(self) -> Iterator[int]:
        for start, end in zip(self.bounds[::2], self.bounds[1::2], strict=True):
            yield from range(start, end)

    def __len__(self) -> int:
        return sum(self.bounds[1::2]) - sum(self.bounds[::2])

    def __or__(self, other: CodeSet) -> CodeSet:
        return CodeSet.of([*self, *other])

    def __sub__(self, other: CodeSet) -> CodeSet:
        return CodeSet.of(code for code in self if code not in other)

    def __le__(self, other: CodeSet) -> bool:
        """Whether each run lies within one of the other's: runs are never adjacent."""
        for start, end in zip(self.bounds[::2], self.bounds[1::2], strict=True):
            place = bisect_right(other.bounds, start)
            if place % 2 == 0 or other.bounds[place] < end:
                return False
        return True

    def isdisjoint(self, other: CodeSet) -> bool:
        return not any(code in other for code in self)
