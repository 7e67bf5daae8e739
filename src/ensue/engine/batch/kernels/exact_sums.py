"""Compiled: sums that are exact, of integers and of reals, to which and from which values go.

A sum is a row of *limbs*, each a count of 2 to the power of 32 times its place, above a power of
two that all values are multiples of. A value adds to three limbs at most, and nothing is carried
until somebody asks, so that taking a value out again undoes what putting it in did: the sum of
nothing is exactly nothing. What is asked for is rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensue.engine.core.jit import uncounted

LIMB = 32
MOST_LIMBS = 72
"""So many limbs hold the sum of any reals."""
MANTISSA = 53

_MASK = np.uint64(0xFFFFFFFF)
_U0, _U1, _U11, _U32 = np.uint64(0), np.uint64(1), np.uint64(11), np.uint64(32)
_HALF, _REST = np.uint64(0x400), np.uint64(0x7FF)
_TOP = np.uint64(1 << 63)


@uncounted
def add_integer(held: Any, key: int, at: int, value: int, sign: int) -> None:
    """Put an integer into a sum, or take it out where the sign is -1."""
    size = np.uint64(value) if value >= 0 else _U0 - np.uint64(value)
    if value < 0:
        sign = -sign
    held[key, at] += sign * np.int64(size & _MASK)
    held[key, at + 1] += sign * np.int64(size >> _U32)


@uncounted
def add_real(held: Any, key: int, at: int, power: int, value: float, sign: int) -> None:
    """Put a real into a sum of multiples of 2 to a power, or take it out again."""
    if value == 0.0:
        return
    if value < 0.0:
        value, sign = -value, -sign
    fraction, exponent = math.frexp(value)
    size = np.uint64(np.int64(math.ldexp(fraction, MANTISSA)))
    shift = exponent - MANTISSA - power
    if shift < 0:
        # The bits that go are zeros: the value is a multiple of the power.
        size >>= np.uint64(-shift)
        shift = 0
    limb, up = at + shift // LIMB, np.uint64(shift % LIMB)
    low = (size & _MASK) << up
    high = ((size >> _U32) << up) + (low >> _U32)
    held[key, limb] += sign * np.int64(low & _MASK)
    held[key, limb + 1] += sign * np.int64(high & _MASK)
    held[key, limb + 2] += sign * np.int64(high >> _U32)


@uncounted
def carried(held: Any, key: int, at: int, limbs: int, digits: Any) -> bool:
    """Write the size of a sum to `digits`, the lowest first; returns whether it is negative."""
    carry = np.int64(0)
    for limb in range(limbs):
        total = held[key, at + limb] + carry
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
def whole_sum(held: Any, key: int, at: int, limbs: int, digits: Any) -> Any:
    """The sum of integers, and whether an integer of 64 bits holds it."""
    negative = carried(held, key, at, limbs, digits)
    for limb in range(2, limbs):
        if digits[limb] != _U0:
            return np.int64(0), False
    size = (digits[1] << _U32) | digits[0]
    if negative:
        return np.int64(_U0 - size), size <= _TOP
    return np.int64(size), size < _TOP


@uncounted
def rounded_sum(held: Any, key: int, at: int, limbs: int, power: int, digits: Any) -> float:
    """The real that is nearest to a sum; of two that are equally near, the even one."""
    negative = carried(held, key, at, limbs, digits)
    top = limbs - 1
    while top >= 0 and digits[top] == _U0:
        top -= 1
    if top < 0:
        return 0.0
    high = digits[top]
    middle = digits[top - 1] if top >= 1 else _U0
    low = digits[top - 2] if top >= 2 else _U0
    width = np.uint64(0)
    while high >> width != _U0:
        width += _U1
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
