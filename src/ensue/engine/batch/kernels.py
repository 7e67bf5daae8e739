"""How loops are compiled, and the loops that number keys: texts and integers by hash tables.

A loop takes plain arrays and returns how far it came. Where it meets what it cannot go on with (an
entry of a table that has not been worked out, a full array) it stops there; Python mends that and
calls it again from the same place. Compiled code is cached on disk, so that a new process only
loads it. So it is with all modules that are named `..._kernels`; what the arrays mean stands with
their owners, here with `keys`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

FAR = 2**62
"""The start of what needs no earlier event; its negative says that a state is not active."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
inlined: Decorator = njit(inline="always")
lowered: Decorator = intrinsic


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a loop that is compiled at its first call, and kept on disk from then on.

    Where there is no place to keep it (a container that is read-only and has no home, an executor
    of a cluster) every process compiles it for itself.
    """
    kept: Callable[..., Any]
    try:
        kept = njit(cache=True, nogil=True)(function)
    except RuntimeError:
        kept = njit(nogil=True)(function)
    return kept


_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@lowered
def _word(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Eight bytes of an array as one number, wherever they begin."""
    signature = types.uint64(array, index)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        at = builder.gep(held.data, [arguments[1]])
        word = ir.IntType(64)
        pointer = builder.bitcast(at, word.as_pointer())
        return builder.load(pointer, align=1, typ=word)

    return signature, generate


@inlined
def _head(data: Any, begin: Any, end: Any) -> Any:
    """The first eight bytes of a text, or all of a shorter one."""
    if end - begin >= 8:
        return _word(data, begin)
    packed = np.uint64(0)
    for at in range(begin, end):
        packed = (packed << np.uint64(8)) | np.uint64(data[at])
    return packed


@inlined
def _tail(data: Any, begin: Any, end: Any) -> Any:
    """The last eight bytes of a text, or nothing of a shorter one."""
    return _word(data, end - 8) if end - begin >= 8 else np.uint64(0)


@inlined
def mixed_with(mixed: Any, word: Any) -> Any:
    """A hash with one more word in it."""
    # The last characters are the high bits of a word: they go down before the product goes up.
    mixed ^= word
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _MULTIPLIER
    return mixed ^ (mixed >> _SHIFT)


@inlined
def _hash_text(data: Any, begin: Any, end: Any, head: Any, tail: Any) -> Any:
    length = end - begin
    mixed = mixed_with(mixed_with(np.uint64(length) * _MULTIPLIER, head), tail)
    if length > 16:
        at = begin + 8
        while at + 8 < end:
            mixed = mixed_with(mixed, _word(data, at))
            at += 8
    return mixed ^ (mixed >> np.uint64(32))


@inlined
def _tag(mixed: Any, length: Any) -> Any:
    """What a slot says of its text besides its number: part of the hash, and the length."""
    known = np.uint64(min(length, 255))
    return (((mixed >> np.uint64(40)) << np.uint64(8)) | known) << np.uint64(32)


@inlined
def _same_middle(data: Any, begin: Any, end: Any, arena: Any, known: Any, known_end: Any) -> Any:
    """Whether two texts of the same head and tail are the same between those as well."""
    if known_end - known != end - begin:
        return False
    at = 8
    while begin + at + 8 < end:
        if _word(data, begin + at) != _word(arena, known + at):
            return False
        at += 8
    return True


@compiled
def number_texts(
    data: Any,
    offsets: Any,
    rows: Any,
    out: Any,
    first: int,
    slots: Any,
    ends_of: Any,
    begins: Any,
    arena: Any,
    count: int,
    grow: bool,
) -> Any:
    """Number each text of the rows by a hash table; texts that are new to it get the next number.

    A slot holds a tag and a number from 1; `ends_of` the head and the tail of each text, which is
    all of it up to 16 bytes. Without `grow` a new text is -1. Stops before a text for which there
    is no room; `rows` that is empty stands for all of `out`.
    """
    mask = np.uint64(slots.size - 1)
    low = np.uint64(0xFFFFFFFF)
    everything = rows.size == 0
    for at in range(first, out.size):
        row = at if everything else rows[at]
        begin = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        head = _head(data, begin, end)
        tail = _tail(data, begin, end)
        mixed = _hash_text(data, begin, end, head, tail)
        tag = _tag(mixed, end - begin)
        slot = mixed & mask
        found = np.int64(-1)
        while slots[slot] != 0:
            held = slots[slot]
            if (held & ~low) == tag:
                number = np.int64(held & low) - 1
                if (
                    ends_of[number, 0] == head
                    and ends_of[number, 1] == tail
                    and (
                        end - begin <= 16
                        or _same_middle(data, begin, end, arena, begins[number], begins[number + 1])
                    )
                ):
                    found = number
                    break
            slot = (slot + np.uint64(1)) & mask
        if found < 0 and grow:
            length = end - begin
            if (
                2 * (count + 1) > slots.size
                or count + 2 > begins.size
                or begins[count] + length > arena.size
            ):
                return at, count
            for place in range(length):
                arena[begins[count] + place] = data[begin + place]
            begins[count + 1] = begins[count] + length
            ends_of[count, 0] = head
            ends_of[count, 1] = tail
            slots[slot] = tag | np.uint64(count + 1)
            found = np.int64(count)
            count += 1
        out[at] = found
    return out.size, count


@compiled
def place_texts(slots: Any, begins: Any, arena: Any, count: int) -> None:
    """Fill the empty slots of a larger table with what is known."""
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        begin = begins[number]
        end = begins[number + 1]
        head = _head(arena, begin, end)
        mixed = _hash_text(arena, begin, end, head, _tail(arena, begin, end))
        slot = mixed & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = _tag(mixed, end - begin) | np.uint64(number + 1)


@compiled
def number_integers(
    values: Any, rows: Any, out: Any, first: int, slots: Any, known: Any, count: int
) -> Any:
    """The same for integers."""
    mask = np.uint64(slots.size - 1)
    everything = rows.size == 0
    for at in range(first, out.size):
        value = values[at if everything else rows[at]]
        mixed = np.uint64(value) * _MULTIPLIER
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        found = -1
        while slots[slot] != 0:
            if known[slots[slot] - 1] == value:
                found = slots[slot] - 1
                break
            slot = (slot + np.uint64(1)) & mask
        if found < 0:
            if 2 * (count + 1) > slots.size or count + 1 > known.size:
                return at, count
            known[count] = value
            slots[slot] = count + 1
            found = count
            count += 1
        out[at] = found
    return out.size, count


@compiled
def place_integers(slots: Any, known: Any, count: int) -> None:
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        mixed = np.uint64(known[number]) * _MULTIPLIER
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number + 1
