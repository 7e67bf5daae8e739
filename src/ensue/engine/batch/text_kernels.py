"""The compiled loops that write texts: the bytes of a whole column, one text after the other.

Arrays in, arrays out: texts are bytes with the offsets at which each begins, as Arrow has them, and
`texts` makes columns of them. The offsets are written to `ends`; where those are too narrow for
them, no bytes come out.

Bytes are read and written by their addresses, for an array that is handed from one function to
another is counted each time, which costs more than the text. A copy goes by eight bytes at a time
and may write past the end of its text, where the next text will be written: a column has eight
bytes more than it needs. It never reads past the end of its source.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ensue.engine.batch.kernels import compiled, inlined, lowered

_LARGEST_OFFSET = 2**31 - 1
_SLOT_BITS = 8
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_COLON, _AT, _COMMA, _ZERO, _MINUS = 58, 64, 44, 48, 45


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


@lowered
def _copy_word(typing_context: Any, source: Any, target: Any) -> Any:  # noqa: ARG001
    """Eight bytes from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        source, target = (_pointer(builder, each, 64) for each in arguments)
        word = builder.load(source, align=1, typ=ir.IntType(64))
        builder.store(word, target, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@lowered
def _byte_at(typing_context: Any, address: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.load(_pointer(builder, arguments[0], 8), typ=ir.IntType(8))

    return types.uint8(types.int64), generate


@lowered
def _put_byte(typing_context: Any, address: Any, byte: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.store(arguments[1], _pointer(builder, arguments[0], 8))
        return context.get_dummy_value()

    return types.void(types.int64, types.uint8), generate


@inlined
def _copy(source: Any, length: Any, limit: Any, target: Any) -> Any:
    """Copy a text; returns where it ends. `limit` is where the source ends."""
    end = target + length
    while target < end:
        if source + 8 <= limit:
            _copy_word(source, target)
            source += 8
            target += 8
        else:
            _put_byte(target, _byte_at(source))
            source += 1
            target += 1
    return end


@inlined
def _is_same(one: Any, other: Any, length: Any) -> Any:
    # Ids that were counted differ at their ends.
    at = length - 1
    while at >= 0 and _byte_at(one + at) == _byte_at(other + at):
        at -= 1
    return at < 0


@inlined
def _digit_count(value: Any) -> Any:
    count = np.int64(1)
    if value < 0:
        count += 1
        value = -value
    limit = np.uint64(10)
    # No time and no count comes near the last power of ten that a word holds.
    while np.uint64(value) >= limit:
        limit *= np.uint64(10)
        count += 1
    return count


@inlined
def _write_number(value: Any, target: Any) -> Any:
    end = target + _digit_count(value)
    if value < 0:
        _put_byte(target, np.uint8(_MINUS))
        value = -value
    left = np.uint64(value)
    place = end
    while True:
        place -= 1
        rest = left // np.uint64(10)
        _put_byte(place, np.uint8(left - rest * np.uint64(10) + np.uint64(_ZERO)))
        left = rest
        if left == 0:
            return end


@inlined
def _fits(total: Any, width: Any) -> Any:
    """Whether offsets of so many bytes can count so far."""
    return total <= _LARGEST_OFFSET or width > 4


@compiled
def take_texts(data: Any, offsets: Any, index: Any, ends: Any) -> Any:
    """The texts at these places."""
    total = np.int64(0)
    ends[0] = 0
    for row in range(index.size):
        place = index[row]
        total += np.int64(offsets[place + 1]) - np.int64(offsets[place])
        ends[row + 1] = total
    if not _fits(total, ends.itemsize):
        return np.empty(0, np.uint8)
    out = np.empty(total + 8, np.uint8)
    target, source = np.int64(out.ctypes.data), np.int64(data.ctypes.data)
    limit = source + data.size
    for row in range(index.size):
        place = index[row]
        begin = np.int64(offsets[place])
        target = _copy(source + begin, np.int64(offsets[place + 1]) - begin, limit, target)
    return out


@compiled
def write_ids(
    names: Any,
    name_from: Any,
    rules: Any,
    triggers: Any,
    trigger_from: Any,
    trigger_of: Any,
    times: Any,
    keyed: bool,
    keys: Any,
    key_from: Any,
    key_of: Any,
    numbers: Any,
    ends: Any,
) -> Any:
    """`correlation:trigger@time:key:n` for each output.

    Outputs of one event and key come one after the other: what they share is written once, and
    then copied. Alarms of different times have one trigger.
    """
    count = numbers.size
    shared = total = np.int64(0)
    ends[0] = 0
    for row in range(count):
        trigger = trigger_of[row]
        key = key_of[row] if keyed else 0
        goes_on = row > 0 and trigger == trigger_of[row - 1] and times[row] == times[row - 1]
        if not goes_on or (keyed and key != key_of[row - 1]):
            shared = np.int64(trigger_from[trigger + 1]) - np.int64(trigger_from[trigger])
            shared += 3 + _digit_count(times[row])
            if keyed:
                shared += 1 + np.int64(key_from[key + 1]) - np.int64(key_from[key])
        rule = rules[row]
        total += np.int64(name_from[rule + 1]) - np.int64(name_from[rule])
        total += shared + _digit_count(numbers[row])
        ends[row + 1] = total
    if not _fits(total, ends.itemsize):
        return np.empty(0, np.uint8)
    out = np.empty(total + 8, np.uint8)
    at = np.int64(out.ctypes.data)
    out_limit = at + out.size
    name_data, trigger_data = np.int64(names.ctypes.data), np.int64(triggers.ctypes.data)
    key_data = np.int64(keys.ctypes.data)
    begin = end = at
    for row in range(count):
        rule = rules[row]
        first = np.int64(name_from[rule])
        length = np.int64(name_from[rule + 1]) - first
        at = _copy(name_data + first, length, name_data + names.size, at)
        trigger = trigger_of[row]
        key = key_of[row] if keyed else 0
        goes_on = row > 0 and trigger == trigger_of[row - 1] and times[row] == times[row - 1]
        if goes_on and (not keyed or key == key_of[row - 1]):
            before = at
            at = _copy(begin, end - begin, out_limit, at)
            begin, end = before, at
        else:
            begin = at
            _put_byte(at, np.uint8(_COLON))
            first = np.int64(trigger_from[trigger])
            length = np.int64(trigger_from[trigger + 1]) - first
            at = _copy(trigger_data + first, length, trigger_data + triggers.size, at + 1)
            _put_byte(at, np.uint8(_AT))
            at = _write_number(times[row], at + 1)
            if keyed:
                _put_byte(at, np.uint8(_COLON))
                first = np.int64(key_from[key])
                length = np.int64(key_from[key + 1]) - first
                at = _copy(key_data + first, length, key_data + keys.size, at + 1)
            _put_byte(at, np.uint8(_COLON))
            at += 1
            end = at
        at = _write_number(numbers[row], at)
    return out


@inlined
def _sort_row(index: Any, row: Any) -> None:
    """By exchanges without branches: nobody can foresee in which order ports are bound."""
    width = index.shape[1]
    for end in range(min(width, 4) - 1, 0, -1):
        for column in range(end):
            one, other = index[row, column], index[row, column + 1]
            index[row, column] = min(one, other)
            index[row, column + 1] = max(one, other)
    for column in range(4, width):
        place = index[row, column]
        while column > 0 and index[row, column - 1] > place:
            index[row, column] = index[row, column - 1]
            column -= 1
        index[row, column] = place


@inlined
def _slot_of_row(index: Any, row: Any) -> Any:
    mixed = np.uint64(0)
    for column in range(index.shape[1]):
        mixed = (mixed ^ np.uint64(index[row, column])) * _MULTIPLIER
    return np.int64(mixed >> np.uint64(64 - _SLOT_BITS))


@compiled
def join_texts(old: Any, old_from: Any, new: Any, new_from: Any, index: Any, ends: Any) -> Any:
    """The texts at the places in each row, by their places, each once, with commas between.

    Places count through the old texts, then through the new ones; -1 is none. Sorts each row of
    `index`, and marks in it what is there already. Rules that fire on one event are often bound to
    the same: a row like one that was met not long ago is copied from there.
    """
    count, width = index.shape
    split = old_from.size - 1
    old_data, new_data = np.int64(old.ctypes.data), np.int64(new.ctypes.data)
    old_limit, new_limit = old_data + old.size, new_data + new.size
    begins = np.empty(width, np.int64)
    lengths = np.empty(width, np.int64)
    known = np.full((1 << _SLOT_BITS, width), -2, np.int64)
    known_row = np.empty(1 << _SLOT_BITS, np.int64)
    like = np.empty(count, np.int32)
    first: Any
    begin: Any
    total = np.int64(0)
    ends[0] = 0
    for row in range(count):
        _sort_row(index, row)
        slot = _slot_of_row(index, row)
        is_known = True
        for column in range(width):
            is_known &= known[slot, column] == index[row, column]
        if is_known:
            first = known_row[slot]
            like[row] = first
            total += np.int64(ends[first + 1]) - np.int64(ends[first])
            ends[row + 1] = total
            continue
        like[row] = -1
        known_row[slot] = row
        for column in range(width):
            known[slot, column] = index[row, column]
        found = 0
        for column in range(width):
            place = index[row, column]
            if place < 0:
                lengths[column] = -1
                continue
            if place < split:
                begins[column] = old_data + np.int64(old_from[place])
                lengths[column] = np.int64(old_from[place + 1]) - np.int64(old_from[place])
            else:
                at = place - split
                begins[column] = new_data + np.int64(new_from[at])
                lengths[column] = np.int64(new_from[at + 1]) - np.int64(new_from[at])
            is_there = False
            for before in range(column):
                if lengths[before] == lengths[column]:
                    is_there |= _is_same(begins[before], begins[column], lengths[column])
            if is_there:
                index[row, column] = -1
                lengths[column] = -1
            else:
                found += 1
                total += lengths[column]
        total += max(found - 1, 0)
        ends[row + 1] = total
    if not _fits(total, ends.itemsize):
        return np.empty(0, np.uint8)
    out = np.empty(total + 8, np.uint8)
    begin_of_all = target = np.int64(out.ctypes.data)
    out_limit = begin_of_all + out.size
    for row in range(count):
        if like[row] >= 0:
            first = np.int64(ends[like[row]])
            length = np.int64(ends[like[row] + 1]) - first
            target = _copy(begin_of_all + first, length, out_limit, target)
            continue
        is_first = True
        for column in range(width):
            place = index[row, column]
            if place < 0:
                continue
            if not is_first:
                _put_byte(target, np.uint8(_COMMA))
                target += 1
            is_first = False
            if place < split:
                begin = np.int64(old_from[place])
                length = np.int64(old_from[place + 1]) - begin
                target = _copy(old_data + begin, length, old_limit, target)
            else:
                begin = np.int64(new_from[place - split])
                length = np.int64(new_from[place - split + 1]) - begin
                target = _copy(new_data + begin, length, new_limit, target)
    return out
