"""Exact sums: compiled loops over the limbs of one sum, and how many limbs a sum needs.

A sum of integers or of reals is a row of *limbs*, each a count of 2 to the power of 32 times its
place, above a power of two that all values are multiples of. A value adds to three limbs at most,
and nothing is carried until the sum is read, so that taking a value out undoes adding it: an empty
sum is exactly zero. The sum is rounded once, when it is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.core.jit import uncounted

LIMB = 32
"""The bits of a limb."""
MOST_LIMBS = 72
"""The number of limbs that holds the sum of any reals."""
EXPONENT_OF_ONE = 1075
"""A real is its fraction of 53 bits times 2 to the power of its exponent, less this."""
_ROOM_FOR_EVENTS = 31
"""How many bits more than its values a sum may have."""
_FRACTION_BITS = 53

_MASK = np.uint64(0xFFFFFFFF)
_U0, _U1, _U11, _U32 = np.uint64(0), np.uint64(1), np.uint64(11), np.uint64(32)
_HALF, _REST = np.uint64(0x400), np.uint64(0x7FF)
_TOP = np.uint64(1 << 63)
_SIGN, _U52 = np.uint64(63), np.uint64(52)
_EXPONENTS, _FRACTION = np.uint64(0x7FF), np.uint64((1 << 52) - 1)


@uncounted
def add_integer(registers: Any, key: int, at: int, value: int, sign: int) -> None:
    """Put an integer into a sum, or take it out where the sign is -1."""
    size = np.uint64(value) if value >= 0 else _U0 - np.uint64(value)
    if value < 0:
        sign = -sign
    registers[key, at] += sign * np.int64(size & _MASK)
    registers[key, at + 1] += sign * np.int64(size >> _U32)


@uncounted
def add_real(registers: Any, key: int, at: int, power: int, bits: int, sign: int) -> None:
    """Put a real, given by its bits, into a sum of multiples of 2 to a power, or take it out."""
    plain = np.uint64(bits)
    if plain >> _SIGN != _U0:
        sign = -sign
    exponent = np.int64(plain >> _U52 & _EXPONENTS)
    size = plain & _FRACTION
    if exponent == 0:
        exponent = np.int64(1)
    else:
        size |= _U1 << _U52
    shift = exponent - EXPONENT_OF_ONE - power
    if size == _U0:
        return
    limb, up = at + (shift >> 5), np.uint64(shift & 31)
    low = (size & _MASK) << up
    high = ((size >> _U32) << up) + (low >> _U32)
    registers[key, limb] += sign * np.int64(low & _MASK)
    registers[key, limb + 1] += sign * np.int64(high & _MASK)
    registers[key, limb + 2] += sign * np.int64(high >> _U32)


@uncounted
def carried(registers: Any, key: int, at: int, limbs: int, digits: Any) -> bool:
    """Write the size of a sum to `digits`, the lowest first; returns whether it is negative."""
    carry = np.int64(0)
    for limb in range(limbs):
        total = registers[key, at + limb] + carry
        digits[limb] = np.uint64(total) & _MASK
        carry = total >> 32
    if carry >= 0:
        return False
    more = _U1
    for limb in range(limbs):
        total_u = (digits[limb] ^ _MASK) + more
        digits[limb] = total_u & _MASK
        more = total_u >> _U32
    return True


@uncounted
def whole_sum(registers: Any, key: int, at: int, limbs: int, digits: Any) -> Any:
    """The sum of integers, and whether an integer of 64 bits holds it."""
    negative = carried(registers, key, at, limbs, digits)
    for limb in range(2, limbs):
        if digits[limb] != _U0:
            return np.int64(0), False
    size = (digits[1] << _U32) | digits[0]
    if negative:
        return np.int64(_U0 - size), size <= _TOP
    return np.int64(size), size < _TOP


@uncounted
def rounded_sum(registers: Any, key: int, at: int, limbs: int, power: int, digits: Any) -> float:
    """The real that is nearest to a sum; of two that are equally near, the even one."""
    negative = carried(registers, key, at, limbs, digits)
    top = limbs - 1
    while top >= 0 and digits[top] == _U0:
        top -= 1
    if top < 0:
        return 0.0
    high = digits[top]
    middle = digits[top - 1] if top >= 1 else _U0
    low = digits[top - 2] if top >= 2 else _U0
    width, left = _U0, high
    for step in (16, 8, 4, 2, 1):
        if left >> np.uint64(step) != _U0:
            left >>= np.uint64(step)
            width += np.uint64(step)
    width += left
    word = (((high << _U32) | middle) << (_U32 - width)) | (low >> width)
    is_inexact = (low & ((_U1 << width) - _U1)) != _U0
    for limb in range(top - 2):
        is_inexact = is_inexact or digits[limb] != _U0
    rest, mantissa = word & _REST, word >> _U11
    if rest > _HALF or (rest == _HALF and (is_inexact or mantissa & _U1 == _U1)):
        mantissa += _U1
    exponent = power + LIMB * (top - 2) + np.int64(width) + 11
    found = math.ldexp(float(mantissa), int(exponent))
    return -found if negative else found


@dataclass
class Powers:
    """The range of powers of two in which all reals of an aggregate lie, so far."""

    low: int = 0
    high: int = 0
    is_known: bool = False

    def including(self, reals: npt.NDArray[np.float64]) -> Powers:
        bits = np.abs(reals).view(np.int64)
        bits = bits[bits != 0]
        if not bits.size:
            return self
        low = max(1, int(bits.min()) >> 52) - EXPONENT_OF_ONE
        return self.holding(low, (int(bits.max()) >> 52) - EXPONENT_OF_ONE + _FRACTION_BITS)

    def holding(self, low: int, high: int) -> Powers:
        """Powers between which there is room for `low` to `high`."""
        if self.is_known and self.low <= low and high <= self.high:
            return self
        if self.is_known:
            low, high = min(low, self.low), max(high, self.high)
        # More than is needed, so that it is seldom needed again.
        return Powers((low // LIMB - 1) * LIMB, (high // LIMB + 1) * LIMB, True)

    @property
    def limbs(self) -> int:
        needed = (self.high - self.low + _ROOM_FOR_EVENTS) // LIMB + 2
        return max(needed, (self.high - self.low - _FRACTION_BITS) // LIMB + 4)
