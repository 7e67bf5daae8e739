"""The compiled loops that take events through many tables at once, by joint states.

The same holds here as in `kernels`: plain arrays in, how far it came out, and Python mends what a
loop cannot go on with. What the arrays mean stands with `joint`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.batch.slice_kernels import lowest
from ensue.engine.core.jit import compiled, inlined

_ONE = np.uint64(1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_OTHER_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)


@inlined
def _share(rule: Any, state: Any) -> Any:
    """What one rule adds to the hash of a joint state: a sum, so that a change costs two of it."""
    mixed = (np.uint64(rule) * _OTHER_MULTIPLIER + np.uint64(state) + _ONE) * _MULTIPLIER
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _OTHER_MULTIPLIER
    return mixed ^ (mixed >> np.uint64(29))


@compiled
def hash_vector(vector: Any) -> Any:
    total = np.uint64(0)
    for rule in range(vector.size):
        total += _share(rule, vector[rule])
    return total


@compiled
def place_vectors(slots: Any, hashes: Any, count: int) -> None:
    """Fill the empty slots of a table with the joint states that are known."""
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        slot = (hashes[number] ^ (hashes[number] >> np.uint64(32))) & mask
        while slots[slot] != 0:
            slot = (slot + _ONE) & mask
        slots[slot] = number + 1


@compiled
def number_vector(slots: Any, hashes: Any, vectors: Any, count: int, mixed: Any) -> Any:
    """The number of the joint state that stands in row `count`: that row, unless it is known."""
    mask = np.uint64(slots.size - 1)
    rules = vectors.shape[1]
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while slots[slot] != 0:
        known = np.int64(slots[slot]) - 1
        if hashes[known] == mixed:
            same = True
            for rule in range(rules):
                same &= vectors[known, rule] == vectors[count, rule]
            if same:
                return known
        slot = (slot + _ONE) & mask
    slots[slot] = count + 1
    hashes[count] = mixed
    return count


@compiled
def number_vectors(
    given: Any, first: int, out: Any, slots: Any, hashes: Any, vectors: Any, count: int
) -> Any:
    """Number joint states that are given row by row. Stops where there is no room for another."""
    for row in range(first, given.shape[0]):
        if count == vectors.shape[0]:
            return row, count
        vectors[count] = given[row]
        number = number_vector(slots, hashes, vectors, count, hash_vector(vectors[count]))
        out[row] = number
        count += number == count
    return given.shape[0], count


@compiled
def work_out_move(
    state: int,
    begin: int,
    end: int,
    words: Any,
    letters: Any,
    masks: Any,
    symbol_of: Any,
    bases: Any,
    widths: Any,
    moves: Any,
    vectors: Any,
    hashes: Any,
    count: int,
    fire_rules: Any,
    fire_actions: Any,
    fire_at: int,
    wanted: Any,
) -> Any:
    """Write where an event takes a joint state to row `count`, and what fires from `fire_at` on.

    `begin` and `end` are the entries of the event's combination. Where tables lack entries, all of
    them are written to `wanted` as (rule, state, letter). Returns how many those are, where the
    firings end, and the hash of the row.
    """
    missing = 0
    mixed = hashes[state]
    vectors[count] = vectors[state]
    fired = fire_at
    for entry in range(begin, end):
        letter = letters[entry]
        left = masks[entry]
        base = np.int64(words[entry]) << 6
        while left != 0:
            rule = base + np.int64(lowest(left))
            left &= left - _ONE
            before = vectors[state, rule]
            symbol = symbol_of[rule, letter]
            place = bases[rule] + (np.int64(before) * widths[rule] + symbol) * 2
            following = np.int32(-1) if symbol < 0 else moves[place]
            if following < 0:
                wanted[missing, 0] = rule
                wanted[missing, 1] = before
                wanted[missing, 2] = letter
                missing += 1
                continue
            action = moves[place + 1]
            if following != before:
                vectors[count, rule] = following
                mixed += _share(rule, following) - _share(rule, before)
            if action != 0:
                # By rule: the entries of a word come by their letters.
                at = fired
                while at > fire_at and fire_rules[at - 1] > rule:
                    fire_rules[at] = fire_rules[at - 1]
                    fire_actions[at] = fire_actions[at - 1]
                    at -= 1
                fire_rules[at] = rule
                fire_actions[at] = action
                fired += 1
    return missing, fired, mixed


@compiled
def walk_joint(
    combinations: Any,
    keys: Any,
    first: int,
    entry_from: Any,
    words: Any,
    letters: Any,
    masks: Any,
    list_from: Any,
    lists: Any,
    symbol_of: Any,
    bases: Any,
    widths: Any,
    moves: Any,
    vectors: Any,
    hashes: Any,
    slots: Any,
    count: int,
    joint: Any,
    fire_from: Any,
    fire_rules: Any,
    fire_actions: Any,
    fires: int,
    states: Any,
    last: Any,
    list_of: Any,
    restored: Any,
    readings_before: int,
    fired_rule: Any,
    fired_at: Any,
    fired_action: Any,
    fired_ports: Any,
    fired: int,
    wanted: Any,
) -> Any:
    """Take each event through the joint states of its key.

    A joint move is (next joint state, set of firings); it is worked out from the tables of the
    rules when it is first needed. The last event of each list and key is noted, for that is what
    ports are bound to. Stops before an event for which tables lack entries (so many are `wanted`),
    or where there is no room for another joint state or for more firings (none are).
    """
    rules = vectors.shape[1]
    width = fired_ports.shape[1]
    is_restored = restored.size > 0
    zero = np.uint64(0)
    for at in range(first, combinations.size):
        if combinations[at] < 0 or keys[at] < 0:
            continue
        # Unsigned numbers, for which nobody asks whether they count from the end.
        combination, key = np.uint64(combinations[at]), np.uint64(keys[at])
        state = np.uint64(states[key])
        following = joint[state, combination, zero]
        if following < 0:
            fire_at = fire_from[fires]
            if (
                count == vectors.shape[0]
                or fires + 2 > fire_from.size
                or fire_at + rules > fire_rules.size
            ):
                return at, fired, count, fires, 0
            missing, fire_end, mixed = work_out_move(
                np.int64(state), entry_from[combination], entry_from[combination + _ONE],
                words, letters, masks, symbol_of, bases, widths, moves, vectors, hashes, count,
                fire_rules, fire_actions, fire_at, wanted,
            )  # fmt: skip
            if missing > 0:
                return at, fired, count, fires, missing
            number = number_vector(slots, hashes, vectors, count, mixed)
            count += number == count
            joint[state, combination, 0] = number
            joint[state, combination, 1] = 0
            if fire_end > fire_at:
                fires += 1
                fire_from[fires] = fire_end
                joint[state, combination, 1] = fires
            following = joint[state, combination, zero]
        firing = joint[state, combination, _ONE]
        if firing != 0 and fired + rules > fired_at.size:
            return at, fired, count, fires, 0
        for each in range(list_from[combination], list_from[combination + _ONE]):
            last[key, np.uint64(lists[each])] = readings_before + at
        states[key] = following
        if firing != 0:
            for each in range(fire_from[firing - 1], fire_from[firing]):
                rule = fire_rules[each]
                fired_rule[fired] = rule
                fired_at[fired] = at
                fired_action[fired] = fire_actions[each]
                for port in range(width):
                    held = last[key, list_of[rule, port]]
                    if is_restored and held == 0:
                        held = restored[rule, key, port]
                    fired_ports[fired, port] = held
                fired += 1
    return combinations.size, fired, count, fires, 0
