"""The compiled loops of the batch engine, and nothing else.

Each takes plain arrays and returns how far it came. Where a loop meets what it cannot go on with
(an entry of a table that has not been worked out, a full array) it stops there; Python mends that
and calls it again from the same place. Compiled code is cached on disk, so that a new process only
loads it. What the arrays mean stands with their owners: `keys` and `walks`.
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
compiled: Decorator = njit(cache=True, nogil=True)
inlined: Decorator = njit(inline="always")
lowered: Decorator = intrinsic

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
def _mixed(mixed: Any, word: Any) -> Any:
    # The last characters are the high bits of a word: they go down before the product goes up.
    mixed ^= word
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _MULTIPLIER
    return mixed ^ (mixed >> _SHIFT)


@inlined
def _hash_text(data: Any, begin: Any, end: Any, head: Any, tail: Any) -> Any:
    length = end - begin
    mixed = _mixed(_mixed(np.uint64(length) * _MULTIPLIER, head), tail)
    if length > 16:
        at = begin + 8
        while at + 8 < end:
            mixed = _mixed(mixed, _word(data, at))
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


@compiled
def walk_table(
    symbols: Any,
    keys: Any,
    first: int,
    table: Any,
    bind_from: Any,
    bind_places: Any,
    states: Any,
    places: Any,
    readings_before: int,
    fired_at: Any,
    fired_action: Any,
    fired_places: Any,
    fired: int,
) -> Any:
    """Take each event through the table of its key's state.

    An entry of the table is (next state, action, a place to bind, a set of more places). The last
    place of a key is nobody's: an entry that binds nothing binds that one, since a store costs less
    than a branch that nobody can foresee. Stops at an entry that is not known (its next state is
    -1) and where there is no room for another firing.
    """
    width = places.shape[1] - 1
    for at in range(first, symbols.size):
        # Unsigned numbers, for which nobody asks whether they count from the end.
        key = np.uint64(keys[at])
        state = np.uint64(states[key])
        symbol = np.uint64(symbols[at])
        following = table[state, symbol, np.uint64(0)]
        action = table[state, symbol, np.uint64(1)]
        if following < 0 or (action != 0 and fired == fired_at.size):
            return at, fired
        states[key] = following
        places[key, np.uint64(table[state, symbol, np.uint64(2)])] = readings_before + at
        more = table[state, symbol, np.uint64(3)]
        if more != 0:
            for entry in range(bind_from[more], bind_from[more + 1]):
                places[key, bind_places[entry]] = readings_before + at
        if action != 0:
            fired_at[fired] = at
            fired_action[fired] = action
            for place in range(width):
                fired_places[fired, place] = places[key, place]
            fired += 1
    return symbols.size, fired


@inlined
def _slot_of_shape(shape: Any, size: Any) -> Any:
    mixed = np.uint64(0)
    for word in range(shape.size):
        mixed = _mixed(mixed, shape[word])
    return np.int64(mixed & np.uint64(size - 1))


@inlined
def _is_shape(known: Any, shape: Any) -> Any:
    same = 0
    while same < shape.size and known[same] == shape[same]:
        same += 1
    return same == shape.size


@compiled
def place_shapes(slots: Any, shapes: Any, count: int) -> None:
    for number in range(count):
        slot = _slot_of_shape(shapes[number], slots.size)
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = number + 1


@compiled
def walk_window(
    symbols: Any,
    times: Any,
    keys: Any,
    first: int,
    program_from: Any,
    program: Any,
    is_simple: Any,
    inputs: Any,
    set_from: Any,
    member_from: Any,
    members: Any,
    clear_from: Any,
    clears: Any,
    target_from: Any,
    targets: Any,
    constant: Any,
    kinds: Any,
    numbers: Any,
    label_from: Any,
    label_states: Any,
    place_from: Any,
    place_states: Any,
    window: int,
    starts: Any,
    places: Any,
    readings_before: int,
    slots: Any,
    shapes: Any,
    label_words: int,
    is_silent: Any,
    known: int,
    fired_at: Any,
    fired_shape: Any,
    fired_places: Any,
    fired: int,
    most_fired: int,
) -> Any:
    """Take each event through the transitions of its symbol, in their order.

    `kinds` is 1 for a transition that binds, 2 for one that binds only the first, 3 for one that
    fires, 4 for one that emits; `numbers` says which place, branch or type. What is set in a pass
    is not there for its inputs: `present` keeps the starts that the event found, where a program is
    not so simple that nothing is set before its input. A firing has a shape: a word for its branch,
    `label_words` for its labels and the others for its places, as bits. Shapes are numbered in a
    hash table, and firings of a silent one are not noted.
    """
    count = starts.shape[1]
    width = places.shape[1] - 1
    present = np.empty(count, np.int64)
    found = np.zeros(shapes.shape[1], np.uint64)
    for at in range(first, symbols.size):
        if fired + most_fired > fired_at.size or 2 * (known + most_fired) > slots.size:
            return at, fired, known
        key = keys[at]
        now = times[at]
        symbol = symbols[at]
        simple = is_simple[symbol]
        if not simple:
            for state in range(count):
                present[state] = starts[key, state]
        for step in range(program_from[symbol], program_from[symbol + 1]):
            number = program[step]
            begun = not simple and inputs[number]
            start = now
            for each in range(set_from[number], set_from[number + 1]):
                latest = -FAR
                for member in range(member_from[each], member_from[each + 1]):
                    state = members[member]
                    held = present[state] if begun else starts[key, state]
                    latest = max(latest, held)
                start = min(start, latest)
            if start == -FAR:
                continue
            kind = kinds[number]
            if kind >= 3:
                branch = np.int64(numbers[number])
                found[:] = np.uint64(0)
                found[0] = np.uint64(branch)
                if kind == 3:
                    oldest = now - window
                    if start < oldest:
                        continue
                    for each in range(label_from[branch], label_from[branch + 1]):
                        if starts[key, label_states[each]] >= oldest:
                            bit = np.uint64(each - label_from[branch])
                            word = np.uint64(1) + (bit >> np.uint64(6))
                            found[word] |= np.uint64(1) << (bit & np.uint64(63))
                    for each in range(place_from[branch], place_from[branch + 1]):
                        if starts[key, place_states[each]] >= oldest:
                            bit = np.uint64(each - place_from[branch])
                            word = np.uint64(1 + label_words) + (bit >> np.uint64(6))
                            found[word] |= np.uint64(1) << (bit & np.uint64(63))
                slot = _slot_of_shape(found, slots.size)
                shape = slots[slot] - 1
                while shape >= 0 and not _is_shape(shapes[shape], found):
                    slot = (slot + 1) & (slots.size - 1)
                    shape = slots[slot] - 1
                if shape < 0:
                    shape = known
                    for each in range(found.size):
                        shapes[shape, each] = found[each]
                    known += 1
                    slots[slot] = known
                if not is_silent[shape]:
                    fired_at[fired] = at
                    fired_shape[fired] = shape
                    for place in range(width):
                        fired_places[fired, place] = places[key, place]
                    fired += 1
            elif kind == 1:
                places[key, numbers[number]] = readings_before + at
            elif kind == 2:
                complete = True
                for each in range(target_from[number], target_from[number + 1]):
                    if starts[key, targets[each]] == -FAR:
                        complete = False
                if not complete:
                    places[key, numbers[number]] = readings_before + at
            for each in range(clear_from[number], clear_from[number + 1]):
                starts[key, clears[each]] = -FAR
                present[clears[each]] = -FAR
            for each in range(target_from[number], target_from[number + 1]):
                state = targets[each]
                starts[key, state] = FAR if constant[state] else start
    return symbols.size, fired, known
