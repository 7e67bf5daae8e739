"""The compiled loop that steps a machine along its transitions.

In come events as symbols, a machine as arrays and the starts and slots of all keys, which the loop
changes; out go firings. A list of lists is two arrays: where each list begins, and the lists one
after the other. `single.linear` makes the arrays, makes room, and turns firings into actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensue.engine.core.jit import FAR, compiled, inlined
from ensue.engine.core.numbering import mixed_with

BINDS, BINDS_FIRST, FIRES, EMITS = 1, 2, 3, 4
"""What a transition does besides: its `numbers` say which place, branch or type."""


class SymbolTransitions(NamedTuple):
    """For each symbol the transitions that an event of it may take, in their order.

    In a simple list no transition sets a state before the one with the input.
    """

    list_from: Any
    listed: Any
    is_simple: Any


class LinearMachine(NamedTuple):
    """The transitions of a machine: sets of states that enable, are cleared and set; effects.

    `constant` is by state; labels and places are the states that stand for them, by branch.
    """

    inputs: Any
    set_from: Any
    member_from: Any
    members: Any
    clear_from: Any
    clears: Any
    target_from: Any
    targets: Any
    constant: Any
    kinds: Any
    numbers: Any
    label_from: Any
    label_states: Any
    place_from: Any
    place_states: Any
    window: int
    most_fired: int


class LinearCells(NamedTuple):
    """For each key the start of each state, and what is bound in each place."""

    starts: Any
    places: Any


class FiringPatterns(NamedTuple):
    """Patterns of firings in a hash table: a word for the branch, `label_words`, words for places.

    Firings of a silent pattern put out nothing and are not written.
    """

    slots: Any
    patterns: Any
    is_silent: Any
    label_words: int
    known: int


class LinearRoom(NamedTuple):
    """Firings: the row of each, its pattern, and what is bound."""

    at: Any
    pattern: Any
    places: Any


@inlined
def _slot_of_pattern(pattern: Any, size: Any) -> Any:
    mixed = np.uint64(0)
    for word in range(pattern.size):
        mixed = mixed_with(mixed, pattern[word])
    return np.int64(mixed & np.uint64(size - 1))


@inlined
def _is_pattern(known: Any, pattern: Any) -> Any:
    same = 0
    while same < pattern.size and known[same] == pattern[same]:
        same += 1
    return same == pattern.size


@compiled
def rehash_patterns(slots: Any, patterns: Any, count: int) -> None:
    """Fill the empty slots of a larger hash table with the patterns that are known."""
    for number in range(count):
        slot = _slot_of_pattern(patterns[number], slots.size)
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = number + 1


@compiled
def walk_linear(
    read: Any,
    at: int,
    transitions: Any,
    machine: Any,
    cells: Any,
    patterns: Any,
    room: Any,
    fired: int,
) -> Any:
    """Take each event through the transitions of its symbol, in their order, from `at` on.

    Inputs are enabled by the states that the event found, not by those that it has set itself:
    `present` keeps the starts that it found, unless the list is simple. Returns how far it came,
    how many firings and how many patterns there are.
    """
    symbols, times, keys, readings_before = read
    list_from, listed, is_simple = transitions
    inputs, set_from, member_from, members = (
        machine.inputs,
        machine.set_from,
        machine.member_from,
        machine.members,
    )
    clear_from, clears = machine.clear_from, machine.clears
    target_from, targets = machine.target_from, machine.targets
    constant, kinds, numbers = machine.constant, machine.kinds, machine.numbers
    label_from, label_states = machine.label_from, machine.label_states
    place_from, place_states = machine.place_from, machine.place_states
    window, most_fired = machine.window, machine.most_fired
    starts, places = cells
    slots, known_patterns, is_silent, label_words, known = patterns
    fired_at, fired_pattern, fired_places = room
    count = starts.shape[1]
    width = places.shape[1]
    present = np.empty(count, np.int64)
    found = np.zeros(known_patterns.shape[1], np.uint64)
    for row in range(at, symbols.size):
        if fired + most_fired > fired_at.size or 2 * (known + most_fired) > slots.size:
            return row, fired, known
        key = keys[row]
        now = times[row]
        symbol = symbols[row]
        simple = is_simple[symbol]
        if not simple:
            for state in range(count):
                present[state] = starts[key, state]
        for step in range(list_from[symbol], list_from[symbol + 1]):
            number = listed[step]
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
            if kind >= FIRES:
                branch = np.int64(numbers[number])
                found[:] = np.uint64(0)
                found[0] = np.uint64(branch)
                if kind == FIRES:
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
                slot = _slot_of_pattern(found, slots.size)
                pattern = slots[slot] - 1
                while pattern >= 0 and not _is_pattern(known_patterns[pattern], found):
                    slot = (slot + 1) & (slots.size - 1)
                    pattern = slots[slot] - 1
                if pattern < 0:
                    pattern = known
                    for each in range(found.size):
                        known_patterns[pattern, each] = found[each]
                    known += 1
                    slots[slot] = known
                if not is_silent[pattern]:
                    fired_at[fired] = row
                    fired_pattern[fired] = pattern
                    for place in range(width):
                        fired_places[fired, place] = places[key, place]
                    fired += 1
            elif kind == BINDS:
                places[key, numbers[number]] = readings_before + row
            elif kind == BINDS_FIRST:
                complete = True
                for each in range(target_from[number], target_from[number + 1]):
                    if starts[key, targets[each]] == -FAR:
                        complete = False
                if not complete:
                    places[key, numbers[number]] = readings_before + row
            for each in range(clear_from[number], clear_from[number + 1]):
                starts[key, clears[each]] = -FAR
                present[clears[each]] = -FAR
            for each in range(target_from[number], target_from[number + 1]):
                state = targets[each]
                starts[key, state] = FAR if constant[state] else start
    return symbols.size, fired, known
