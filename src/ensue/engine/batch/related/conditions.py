"""Compiled loops: exact sums, the value of an aggregate, and whether a condition over them holds.

A sum of integers or of reals is a row of *limbs*, each a count of 2 to the power of 32 times its
place, above a power of two that all values are multiples of. A value adds to three limbs at most,
and nothing is carried until the sum is read, so that taking a value out undoes adding it: an empty
sum is exactly zero. The sum is rounded once, when it is read.

Aggregates live in the registers of a key (`stretches`); a condition is a program of typed steps
(`core.relating.condition`), and ends without holding at the first null or error that it meets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensue.engine.core.jit import inlined, uncounted
from ensue.engine.core.relating.condition import REALS, Step

LIMB = 32
MOST_LIMBS = 72
"""The number of limbs that holds the sum of any reals."""
EXPONENT_OF_ONE = 1075
"""A real is its fraction of 53 bits times 2 to the power of its exponent, less this."""

_MASK = np.uint64(0xFFFFFFFF)
_U0, _U1, _U11, _U32 = np.uint64(0), np.uint64(1), np.uint64(11), np.uint64(32)
_HALF, _REST = np.uint64(0x400), np.uint64(0x7FF)
_TOP = np.uint64(1 << 63)
_SIGN, _U52 = np.uint64(63), np.uint64(52)
_EXPONENTS, _FRACTION = np.uint64(0x7FF), np.uint64((1 << 52) - 1)


@uncounted
def add_integer(held: Any, key: int, at: int, value: int, sign: int) -> None:
    """Put an integer into a sum, or take it out where the sign is -1."""
    size = np.uint64(value) if value >= 0 else _U0 - np.uint64(value)
    if value < 0:
        sign = -sign
    held[key, at] += sign * np.int64(size & _MASK)
    held[key, at + 1] += sign * np.int64(size >> _U32)


@uncounted
def add_real(held: Any, key: int, at: int, power: int, bits: int, sign: int) -> None:
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


COUNT, SUM, AVERAGE, DISTINCT, LEAST, GREATEST, FIRST, LAST = range(8)
"""The kinds of aggregates."""
KIND, REAL, OWN, COUNTS, LIMBS, POWER, PORT, VALUE, QUEUE, COLUMNS = range(10)
"""The columns of an aggregate: its kind, whether its values are reals, its registers, that of the
count, the limbs of its sum and their power of two, its port, and where values and queues stand."""

_LOAD_INTEGER, _LOAD_REAL = int(Step.LOAD_INTEGER), int(Step.LOAD_REAL)
_OPERAND_INTEGER, _OPERAND_REAL = int(Step.OPERAND_INTEGER), int(Step.OPERAND_REAL)
_AGGREGATE_INTEGER, _AGGREGATE_REAL = int(Step.AGGREGATE_INTEGER), int(Step.AGGREGATE_REAL)
_TO_REAL, _NOT, _MOVE = int(Step.TO_REAL), int(Step.NOT), int(Step.MOVE)
_NEGATE_INTEGER, _NEGATE_REAL = int(Step.NEGATE_INTEGER), int(Step.NEGATE_REAL)
_JUMP_IF_FALSE, _JUMP_IF_TRUE = int(Step.JUMP_IF_FALSE), int(Step.JUMP_IF_TRUE)
_ADD, _SUBTRACT, _MULTIPLY = int(Step.ADD), int(Step.SUBTRACT), int(Step.MULTIPLY)
_DIVIDE, _REMAINDER = int(Step.DIVIDE), int(Step.REMAINDER)
_EQUAL, _NOT_EQUAL, _LESS = int(Step.EQUAL), int(Step.NOT_EQUAL), int(Step.LESS)
_AT_MOST, _GREATER, _AT_LEAST = int(Step.AT_MOST), int(Step.GREATER), int(Step.AT_LEAST)
_SMALLEST = np.int64(-(2**63))


@inlined
def aggregate(
    held: Any, key: int, aggregates: Any, number: int, values: Any, reals: Any, base: int,
    digits: Any,
) -> Any:  # fmt: skip
    """The value of an aggregate: as an integer, as a real, and whether it has a value."""
    kind, is_real, at = aggregates[number, KIND], aggregates[number, REAL], aggregates[number, OWN]
    if kind == COUNT:
        return held[key, aggregates[number, COUNTS]], 0.0, True
    if kind == DISTINCT:
        return held[key, at], 0.0, True
    if kind in (SUM, AVERAGE):
        count = held[key, at]
        if count == 0:
            return np.int64(0), 0.0, False
        limbs, power = aggregates[number, LIMBS], aggregates[number, POWER]
        if kind == SUM and not is_real:
            total, fits = whole_sum(held, key, at + 1, limbs, digits)
            return total, 0.0, fits
        rounded = rounded_sum(held, key, at + 1, limbs, power, digits)
        if kind == AVERAGE:
            return np.int64(0), rounded / count, math.isfinite(rounded)
        return np.int64(0), rounded, math.isfinite(rounded)
    row = held[key, at]
    if row == 0:
        return np.int64(0), 0.0, False
    if is_real:
        return np.int64(0), reals[row - base, aggregates[number, VALUE]], True
    return values[row - base, aggregates[number, VALUE]], 0.0, True


@uncounted
def integer_step(step: int, x: int, y: int) -> Any:
    """An operator between integers: the value, and whether there is one."""
    if step == _EQUAL:
        return np.int64(x == y), True
    if step == _NOT_EQUAL:
        return np.int64(x != y), True
    if step == _LESS:
        return np.int64(x < y), True
    if step == _AT_MOST:
        return np.int64(x <= y), True
    if step == _GREATER:
        return np.int64(x > y), True
    if step == _AT_LEAST:
        return np.int64(x >= y), True
    if step == _ADD:
        # Unsigned, for the compiler takes it that signed numbers never overflow.
        total = np.int64(np.uint64(x) + np.uint64(y))
        return total, ((x ^ total) & (y ^ total)) >= 0
    if step == _SUBTRACT:
        total = np.int64(np.uint64(x) - np.uint64(y))
        return total, ((x ^ y) & (x ^ total)) >= 0
    if step == _MULTIPLY:
        return times(x, y)
    if y == 0:
        return np.int64(0), False
    if x == _SMALLEST and y == -1:
        return np.int64(0), step == _REMAINDER
    # Both toward zero, as CESQL divides.
    quotient = abs(x) // abs(y) if x != _SMALLEST and y != _SMALLEST else far_quotient(x, y)
    if (x < 0) != (y < 0):
        quotient = -quotient
    return (quotient if step == _DIVIDE else x - y * quotient), True


@uncounted
def times(x: int, y: int) -> Any:
    """The product of two integers, and whether 64 bits hold it."""
    left = np.uint64(x) if x >= 0 else _U0 - np.uint64(x)
    right = np.uint64(y) if y >= 0 else _U0 - np.uint64(y)
    is_negative = (x < 0) != (y < 0)
    largest = _TOP if is_negative else _TOP - _U1
    if right != _U0 and left > largest // right:
        return np.int64(0), False
    size = left * right
    return np.int64(_U0 - size if is_negative else size), True


@uncounted
def far_quotient(x: int, y: int) -> Any:
    """The absolute value of a quotient where one side is the smallest integer, which has none."""
    if y == _SMALLEST:
        return np.int64(1) if x == _SMALLEST else np.int64(0)
    quotient, rest = _SMALLEST // abs(y), _SMALLEST % abs(y)
    return -(quotient + (1 if rest != 0 else 0))


@uncounted
def real_step(step: int, x: float, y: float) -> Any:
    """An operator between reals: the value as an integer or a real, and whether there is one."""
    if step == _EQUAL:
        return np.int64(x == y), 0.0, True
    if step == _NOT_EQUAL:
        return np.int64(x != y), 0.0, True
    if step == _LESS:
        return np.int64(x < y), 0.0, True
    if step == _AT_MOST:
        return np.int64(x <= y), 0.0, True
    if step == _GREATER:
        return np.int64(x > y), 0.0, True
    if step == _AT_LEAST:
        return np.int64(x >= y), 0.0, True
    if step == _ADD:
        found = x + y
    elif step == _SUBTRACT:
        found = x - y
    elif step == _MULTIPLY:
        found = x * y
    elif y == 0.0:
        return np.int64(0), 0.0, False
    elif step == _DIVIDE:
        found = x / y
    else:
        found = np.fmod(x, y)
    return np.int64(0), found, math.isfinite(found)


@inlined
def condition_holds(
    program: Any,
    each: int,
    held: Any,
    key: int,
    aggregates: Any,
    values: Any,
    reals: Any,
    base: int,
) -> Any:
    """Whether the condition holds of candidate `each`, with what its key has in registers."""
    steps, integers, constants = program.steps, program.integers, program.reals
    known_integers, known_reals, errors = (
        program.known_integers,
        program.known_reals,
        program.errors,
    )
    whole, real = program.whole, program.real
    at = 0
    while at < len(steps):
        step, to, x, y = steps[at, 0], steps[at, 1], steps[at, 2], steps[at, 3]
        at += 1
        if step == _LOAD_INTEGER:
            whole[to] = integers[x]
        elif step == _LOAD_REAL:
            real[to] = constants[x]
        elif step in (_AGGREGATE_INTEGER, _AGGREGATE_REAL):
            found, found_real, there = aggregate(
                held, key, aggregates, x, values, reals, base, program.digits
            )
            if not there:
                return False
            whole[to], real[to] = found, found_real
        elif step in (_OPERAND_INTEGER, _OPERAND_REAL):
            if errors[x, each]:
                return False
            whole[to], real[to] = known_integers[x, each], known_reals[x, each]
        elif step == _TO_REAL:
            real[to] = float(whole[x])
        elif step == _NEGATE_INTEGER:
            if whole[x] == _SMALLEST:
                return False
            whole[to] = -whole[x]
        elif step == _NEGATE_REAL:
            real[to] = -real[x]
        elif step == _NOT:
            whole[to] = 1 - whole[x]
        elif step == _MOVE:
            whole[to], real[to] = whole[x], real[x]
        elif step == _JUMP_IF_FALSE:
            if whole[x] == 0:
                at = y
        elif step == _JUMP_IF_TRUE:
            if whole[x] != 0:
                at = y
        elif step < _ADD + REALS:
            found, there = integer_step(step, whole[x], whole[y])
            if not there:
                return False
            whole[to] = found
        else:
            found, found_real, there = real_step(step - REALS, real[x], real[y])
            if not there:
                return False
            whole[to], real[to] = found, found_real
    return whole[0] != 0
