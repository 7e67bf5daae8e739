"""The compiled loops that join the ids of bound events: the causes of outputs.

As `text_writing`, which they write texts with: texts in, and places among them by output; out go
the bytes of a column. Events may have one id: of texts that are the same, one is written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensue.engine.batch.kernels.text_writing import SPARE, byte_at, copy_text, copy_word, put_byte
from ensue.engine.core.jit import compiled, inlined

_U1 = np.uint64(1)
_COMMA = 44


class RecentPlaces(NamedTuple):
    """Which texts the outputs bind: `bound` by output and slot, of which three `columns` count.

    Places count from `base` on, and go up with the `rows` that the texts are of, if there are any.
    `lacks` says for each action which of the columns it lacks; without rows, no action lacks any.
    """

    bound: Any
    columns: Any
    base: int
    rows: Any
    actions: Any
    lacks: Any


@inlined
def is_same(one: Any, other: Any, length: Any) -> Any:
    # Ids that were counted differ at their ends.
    at = length - 1
    while at >= 0 and byte_at(one + at) == byte_at(other + at):
        at -= 1
    return at < 0


@compiled
def join_texts(old_texts: Any, new_texts: Any, index: Any, first: int, out: Any, ends: Any) -> Any:
    """The texts at the places in each row, by their places, each once, with commas between.

    Places count through the old texts, then through the new ones; -1 is none.
    """
    old, old_from = old_texts
    new, new_from = new_texts
    width = index.shape[1]
    split = old_from.size - 1
    places = np.empty(width, np.int64)
    old_data, new_data = np.int64(old.ctypes.data), np.int64(new.ctypes.data)
    old_limit, new_limit = old_data + old.size, new_data + new.size
    begins = np.empty(width, np.int64)
    lengths = np.empty(width, np.int64)
    begin_of_all = np.int64(out.ctypes.data)
    target, out_limit = begin_of_all + np.int64(ends[first]), begin_of_all + out.size - SPARE
    for row in range(first, index.shape[0]):
        places[:] = index[row]
        # Without branches for a few: the order in which ports are bound cannot be foreseen.
        in_order = 1
        if width > 2:
            x, y, z = places[0], places[1], places[2]
            x, y = min(x, y), max(x, y)
            y, z = min(y, z), max(y, z)
            places[0], places[1], places[2] = min(x, y), max(x, y), z
            in_order = 3
        for end in range(in_order, width):
            place, column = places[end], end
            while column > 0 and places[column - 1] > place:
                places[column] = places[column - 1]
                column -= 1
            places[column] = place
        found = 0
        needed = np.int64(0)
        before = np.int64(-1)
        for column in range(width):
            place = places[column]
            if place == before:
                continue
            before = place
            if place < split:
                begin = old_data + np.int64(old_from[place])
                length = np.int64(old_from[place + 1]) - np.int64(old_from[place])
            else:
                at = np.uint64(place - split)
                begin = new_data + np.int64(new_from[at])
                length = np.int64(new_from[at + _U1]) - np.int64(new_from[at])
            is_there = False
            for other in range(found):
                if lengths[other] == length:
                    is_there |= is_same(begins[other], begin, length)
            if not is_there:
                begins[found], lengths[found] = begin, length
                found += 1
                needed += 1 + length
        if target + needed > out_limit:
            return row
        for each in range(found):
            if each > 0:
                put_byte(target, np.uint8(_COMMA))
                target += 1
            begin = begins[each]
            is_old = (begin >= old_data) & (begin < old_limit)
            target = copy_text(begin, lengths[each], old_limit if is_old else new_limit, target)
        ends[row + 1] = target - begin_of_all
    return index.shape[0]


@compiled
def join_few(ids: Any, places: Any, first: int, out: Any, ends: Any) -> Any:
    """`join_texts` for three columns, any of which may come twice, where there are no old texts.

    `places` are `RecentPlaces`. Returns -1 for a place before the first text, unless the action
    lacks it; no action lacks all.

    Where the texts of a row are short, nothing depends on how long they are and whether one comes
    twice: what is not to be there is written over.
    """
    texts, text_from = ids
    bound, columns, base, rows, actions, lacks = places
    has_all, has_rows = lacks.size == 0, rows.size > 0
    data = np.int64(texts.ctypes.data)
    limit = data + texts.size
    begin_of_all = np.int64(out.ctypes.data)
    target, out_limit = begin_of_all + np.int64(ends[first]), begin_of_all + out.size - SPARE
    one, two, three = columns[0], columns[1], columns[2]
    for row in range(first, bound.shape[0]):
        x, y, z = bound[row, one] - base, bound[row, two] - base, bound[row, three] - base
        if not has_all:
            action = actions[row]
            # What is lacking is one of those that are there, once more.
            there = max(
                -1 if lacks[action, 0] else x,
                -1 if lacks[action, 1] else y,
                -1 if lacks[action, 2] else z,
            )
            x = there if lacks[action, 0] else x
            y = there if lacks[action, 1] else y
            z = there if lacks[action, 2] else z
        x, y = min(x, y), max(x, y)
        y, z = min(y, z), max(y, z)
        x, y = min(x, y), max(x, y)
        if x < 0:
            return -1
        if has_rows:
            x, y, z = rows[x], rows[y], rows[z]
        of_x, of_y, of_z = np.uint64(x), np.uint64(y), np.uint64(z)
        from_x, from_y = np.int64(text_from[of_x]), np.int64(text_from[of_y])
        from_z = np.int64(text_from[of_z])
        in_x = np.int64(text_from[of_x + _U1]) - from_x
        in_y = np.int64(text_from[of_y + _U1]) - from_y
        in_z = np.int64(text_from[of_z + _U1]) - from_z
        if target + in_x + in_y + in_z > out_limit:
            return row
        from_x, from_y, from_z = data + from_x, data + from_y, data + from_z
        has_y, has_z = y != x, z != y
        if has_y and in_x == in_y and is_same(from_x, from_y, in_x):
            has_y = False
        if has_z and in_y == in_z and is_same(from_y, from_z, in_z):
            has_z = False
        if has_z and in_x == in_z and is_same(from_x, from_z, in_z):
            has_z = False
        if (max(in_x, in_y, in_z) <= 16) & (max(from_x, from_y, from_z) + 16 <= limit):
            copy_word(from_x, target)
            copy_word(from_x + 8, target + 8)
            target += in_x
            put_byte(target, np.uint8(_COMMA))
            copy_word(from_y, target + 1)
            copy_word(from_y + 8, target + 9)
            target += 1 + in_y if has_y else 0
            put_byte(target, np.uint8(_COMMA))
            copy_word(from_z, target + 1)
            copy_word(from_z + 8, target + 9)
            target += 1 + in_z if has_z else 0
        else:
            target = copy_text(from_x, in_x, limit, target)
            if has_y:
                put_byte(target, np.uint8(_COMMA))
                target = copy_text(from_y, in_y, limit, target + 1)
            if has_z:
                put_byte(target, np.uint8(_COMMA))
                target = copy_text(from_z, in_z, limit, target + 1)
        ends[row + 1] = target - begin_of_all
    return bound.shape[0]
