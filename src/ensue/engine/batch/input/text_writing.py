"""The compiled loops that write texts: the bytes of a whole column, one text after the other.

Arrays in, arrays out: texts are bytes with the offsets at which each begins, as Arrow has them, and
`column` makes columns of them. A loop begins with the row `first` and writes to `out`; it stops
before a row for which there may be no room there, and returns how far it came. Where each text ends
is written to `ends`.

Bytes are read and written by their addresses, for an array that is handed from one function to
another is counted each time, which costs more than the text. A copy goes by eight bytes at a time
and may write past the end of its text, where the next text will be written. It never reads past the
end of its source.

The module is long because every loop writes by the few inlined copies at its beginning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from ensue.engine.core.jit import compiled, inlined, lowered

_U1 = np.uint64(1)
_EIGHT_DIGITS = np.uint64(10**8)
SPARE = 64
"""More than all that stands in an id besides texts, and than a copy writes past its end."""
_COMMA, _COLON, _AT, _ZERO, _MINUS = 44, 58, 64, 48, 45


class IdParts(NamedTuple):
    """For each output the numbers of its texts, its time, and its number at its trigger.

    Without keys `key_of` has no rows.
    """

    rules: Any
    trigger_of: Any
    times: Any
    key_of: Any
    numbers: Any


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


@lowered
def copy_word(typing_context: Any, source: Any, target: Any) -> Any:  # noqa: ARG001
    """Eight bytes from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        source, target = (_pointer(builder, each, 64) for each in arguments)
        word = builder.load(source, align=1, typ=ir.IntType(64))
        builder.store(word, target, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@lowered
def byte_at(typing_context: Any, address: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.load(_pointer(builder, arguments[0], 8), typ=ir.IntType(8))

    return types.uint8(types.int64), generate


@lowered
def put_byte(typing_context: Any, address: Any, byte: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.store(arguments[1], _pointer(builder, arguments[0], 8))
        return context.get_dummy_value()

    return types.void(types.int64, types.uint8), generate


@lowered
def _put_word(typing_context: Any, address: Any, word: Any) -> Any:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.store(arguments[1], _pointer(builder, arguments[0], 64), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), generate


@inlined
def _digits(value: Any) -> Any:
    """A number of up to eight digits as eight bytes, the first digit in the lowest.

    Halves, then quarters, then digits, of all at once: a product and a shift stand for a division.
    """
    above = value // np.uint64(10_000)
    four = above | (value - above * np.uint64(10_000)) << np.uint64(32)
    above = four * np.uint64(10_486) >> np.uint64(20) & np.uint64(0x7F0000007F)
    two = above | (four - above * np.uint64(100)) << np.uint64(16)
    above = two * np.uint64(103) >> np.uint64(10) & np.uint64(0xF000F000F000F)
    return above | (two - above * np.uint64(10)) << np.uint64(8) | np.uint64(0x3030303030303030)


@inlined
def copy_text(source: Any, length: Any, limit: Any, target: Any) -> Any:
    """Copy a text; returns where it ends. `limit` is where the source ends."""
    end = target + length
    while target < end:
        if source + 8 <= limit:
            copy_word(source, target)
            source += 8
            target += 8
        else:
            put_byte(target, byte_at(source))
            source += 1
            target += 1
    return end


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
    if 0 <= value < 10:
        put_byte(target, np.uint8(value + _ZERO))
        return target + 1
    end = target + _digit_count(value)
    if value < 0:
        put_byte(target, np.uint8(_MINUS))
        value = -value
    left = np.uint64(value)
    place = end
    while left >= _EIGHT_DIGITS:
        rest = left // _EIGHT_DIGITS
        place -= 8
        _put_word(place, _digits(left - rest * _EIGHT_DIGITS))
        left = rest
    while True:
        place -= 1
        rest = left // np.uint64(10)
        put_byte(place, np.uint8(left - rest * np.uint64(10) + np.uint64(_ZERO)))
        left = rest
        if left == 0:
            return end


@compiled
def take_texts(texts: Any, index: Any, first: int, out: Any, ends: Any) -> Any:
    """The texts at these places."""
    data, offsets = texts
    begin_of_all, source = np.int64(out.ctypes.data), np.int64(data.ctypes.data)
    target, out_limit = begin_of_all + np.int64(ends[first]), begin_of_all + out.size - SPARE
    limit = source + data.size
    for row in range(first, index.size):
        place = index[row]
        begin = np.int64(offsets[place])
        length = np.int64(offsets[place + 1]) - begin
        if target + length > out_limit:
            return row
        target = copy_text(source + begin, length, limit, target)
        ends[row + 1] = target - begin_of_all
    return index.size


@compiled
def write_ids(
    names_of: Any, triggers_of: Any, keys_of: Any, parts: Any, first: int, out: Any, ends: Any
) -> Any:
    """`correlation:trigger@time:key:n` for each output.

    Outputs of one event and key come one after the other: what they share is written once, and
    then copied. Alarms of different times have one trigger.
    """
    names, name_from = names_of
    triggers, trigger_from = triggers_of
    keys, key_from = keys_of
    rules, trigger_of, times, key_of, numbers = parts
    keyed = key_of.size > 0
    begin_of_all = np.int64(out.ctypes.data)
    out_limit = begin_of_all + out.size - SPARE
    name_data, trigger_data = np.int64(names.ctypes.data), np.int64(triggers.ctypes.data)
    name_limit, trigger_limit = name_data + names.size, trigger_data + triggers.size
    key_data = np.int64(keys.ctypes.data)
    key_limit = key_data + keys.size
    at = begin = end = begin_of_all + np.int64(ends[first])
    last_trigger = last_key = np.int64(-1)
    last_time = np.int64(0)
    for row in range(first, numbers.size):
        rule, trigger, time = rules[row], np.int64(trigger_of[row]), times[row]
        key = np.int64(key_of[row]) if keyed else np.int64(0)
        of_name = np.int64(name_from[rule])
        length = np.int64(name_from[rule + 1]) - of_name
        if (trigger == last_trigger) & (time == last_time) & (key == last_key):
            if at + length + (end - begin) > out_limit:
                return row
            at = copy_text(name_data + of_name, length, name_limit, at)
            # From where it was written first: what was written last cannot be read at once.
            at = copy_text(begin, end - begin, out_limit, at)
        else:
            of_trigger = np.int64(trigger_from[trigger])
            shared = np.int64(trigger_from[trigger + 1]) - of_trigger
            of_key = in_key = np.int64(0)
            if keyed:
                of_key = np.int64(key_from[key])
                in_key = np.int64(key_from[key + 1]) - of_key
            if at + length + shared + in_key > out_limit:
                return row
            at = copy_text(name_data + of_name, length, name_limit, at)
            begin = at
            put_byte(at, np.uint8(_COLON))
            at = copy_text(trigger_data + of_trigger, shared, trigger_limit, at + 1)
            put_byte(at, np.uint8(_AT))
            at = _write_number(time, at + 1)
            if keyed:
                put_byte(at, np.uint8(_COLON))
                at = copy_text(key_data + of_key, in_key, key_limit, at + 1)
            put_byte(at, np.uint8(_COLON))
            at += 1
            end = at
            last_trigger, last_time, last_key = trigger, time, key
        at = _write_number(numbers[row], at)
        ends[row + 1] = at - begin_of_all
    return numbers.size


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
