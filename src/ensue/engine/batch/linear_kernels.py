"""The compiled loop that steps a machine along its transitions, as `kernels` has those of keys.

What the arrays mean stands with `linear_walk`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR, compiled, inlined
from ensue.engine.core.numbering import mixed_with


@inlined
def _slot_of_shape(shape: Any, size: Any) -> Any:
    mixed = np.uint64(0)
    for word in range(shape.size):
        mixed = mixed_with(mixed, shape[word])
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
def walk_linear(
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
    width = places.shape[1]
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
