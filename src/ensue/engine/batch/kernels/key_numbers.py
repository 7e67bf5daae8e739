"""The compiled loops that number texts by a hash table, which `keys` keeps and enlarges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from ensue.engine.core.jit import compiled, inlined, lowered
from ensue.engine.core.numbering import MULTIPLIER, mixed_with


class TextTable(NamedTuple):
    """A hash table of texts; the bytes of text n are `arena[begins[n]:begins[n + 1]]`.

    A slot holds a tag and a number from 1, or 0; `ends` the head and the tail of each text, which
    is all of it up to 16 bytes.
    """

    slots: Any
    ends: Any
    begins: Any
    arena: Any


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
def _hash_text(data: Any, begin: Any, end: Any, head: Any, tail: Any) -> Any:
    length = end - begin
    mixed = mixed_with(mixed_with(np.uint64(length) * MULTIPLIER, head), tail)
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
    """Whether two texts with equal heads and tails are equal in between."""
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
    texts: Any, rows: Any, out: Any, first: int, table: Any, count: int, grow: bool
) -> Any:
    """Number each text of the rows by a hash table; texts that are new to it get the next number.

    Without `grow` a new text is -1. Stops before a text for which there is no room; `rows` that is
    empty stands for all of `out`.
    """
    data, offsets = texts
    slots, ends_of, begins, arena = table
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
def place_texts(table: Any, count: int) -> None:
    """Fill the empty slots of a larger table with what is known."""
    slots, _, begins, arena = table
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
