"""The compiled loops over states that are kept as bits, sixty-four rules to a word.

An event moves every rule that reads it at once: a rule reads a *letter* (which of its ports the
event matches, as bits), all rules of a word that read the same letter and stand in the same state
are one word, and that word moves as a whole. What the arrays mean stands with `slices`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ensue.engine.core.jit import compiled, lowered

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)


@lowered
def lowest(typing_context: Any, word: Any) -> Any:  # noqa: ARG001
    """The number of the lowest bit of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@compiled
def mark_rows(marks: Any, rows: Any, number: int) -> None:
    """Note for each of the rows that it is in the list of this number."""
    word = number >> 6
    bit = _ONE << np.uint64(number & 63)
    for at in range(rows.size):
        marks[rows[at], word] |= bit


@compiled
def number_marks(
    marks: Any, first: int, out: Any, slots: Any, known: Any, hashes: Any, count: int
) -> Any:
    """Number the combinations of lists that rows are in; -1 is in none. Stops where they are full.

    `slots` has at least twice as many places as `known`, and a power of two of them.
    """
    mask = np.uint64(slots.size - 1)
    words = marks.shape[1]
    for row in range(first, out.size):
        mixed = np.uint64(0)
        found_any = np.uint64(0)
        for word in range(words):
            held = marks[row, word]
            found_any |= held
            mixed = (mixed ^ held) * _MULTIPLIER
            mixed ^= mixed >> np.uint64(29)
        if found_any == 0:
            out[row] = -1
            continue
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        number = -1
        while slots[slot] != 0:
            candidate = slots[slot] - 1
            if hashes[candidate] == mixed:
                same = True
                for word in range(words):
                    same &= known[candidate, word] == marks[row, word]
                if same:
                    number = candidate
                    break
            slot = (slot + _ONE) & mask
        if number < 0:
            if count == known.shape[0]:
                return row, count
            for word in range(words):
                known[count, word] = marks[row, word]
            hashes[count] = mixed
            slots[slot] = count + 1
            number = count
            count += 1
        out[row] = number
    return out.size, count


@compiled
def letters_of(
    marks: Any,
    reader_from: Any,
    readers: Any,
    letters: Any,
    words: Any,
    read: Any,
    masks: Any,
    first: int,
) -> int:
    """What each rule reads of an event in these lists: entries of a word, a letter, and the rules.

    A list has readers: a rule and one of its ports each. Entries are written from `first` on, by
    their words; there is room for one of each rule. Returns where they end.
    """
    letters[:] = 0
    for word in range(marks.size):
        left = marks[word]
        while left != 0:
            number = (word << 6) + np.int64(lowest(left))
            left &= left - _ONE
            for at in range(reader_from[number], reader_from[number + 1]):
                letters[readers[at, 0]] |= np.uint8(1 << readers[at, 1])
    end = first
    for rule in range(letters.size):
        letter = letters[rule]
        if letter == 0:
            continue
        word = rule >> 6
        entry = end - 1
        while entry >= first and words[entry] == word and read[entry] != letter:
            entry -= 1
        if entry < first or words[entry] != word:
            entry = end
            words[entry] = word
            read[entry] = letter
            masks[entry] = 0
            end += 1
        masks[entry] |= _ONE << np.uint64(rule & 63)
    return end


@compiled
def work_out(
    known: Any,
    done: int,
    count: int,
    reader_from: Any,
    readers: Any,
    letters: Any,
    entry_from: Any,
    words: Any,
    read: Any,
    masks: Any,
    list_from: Any,
    lists: Any,
) -> int:
    """The entries and lists of all combinations from `done` on. Stops where there is no room."""
    for number in range(done, count):
        begin, at = entry_from[number], list_from[number]
        if begin + letters.size > words.size or at + known.shape[1] * 64 > lists.size:
            return number
        entry_from[number + 1] = letters_of(
            known[number], reader_from, readers, letters, words, read, masks, begin
        )
        for word in range(known.shape[1]):
            left = known[number, word]
            while left != 0:
                lists[at] = (word << 6) + np.int64(lowest(left))
                left &= left - _ONE
                at += 1
        list_from[number + 1] = at
    return count


@compiled
def count_rules(words: Any, masks: Any, times: int, counts: Any) -> None:
    """Count so many times for each rule that is in one of the masks."""
    for entry in range(words.size):
        left = masks[entry]
        while left != 0:
            counts[(np.int64(words[entry]) << 6) + np.int64(lowest(left))] += times
            left &= left - _ONE


@compiled
def walk_slices(
    combinations: Any,
    keys: Any,
    first: int,
    entry_from: Any,
    words: Any,
    letters: Any,
    masks: Any,
    list_from: Any,
    lists: Any,
    move_from: Any,
    moves: Any,
    slices: Any,
    words_of_key: int,
    states: int,
    last: Any,
    list_of: Any,
    restored: Any,
    readings_before: int,
    fired_rule: Any,
    fired_at: Any,
    fired_action: Any,
    fired_places: Any,
    rules: int,
) -> Any:
    """Take each event through all rules that read it, those of one word and letter at once.

    A move is (state, next state, action); what stays where it is and puts out nothing has none. In
    `slices` come the words of a key, and in each word its states.
    The last event of each list and key is noted, for that is what its ports are bound to. Stops
    where there might be no room for the firings of an event; they come by event, then by rule.
    """
    width = fired_places.shape[1]
    is_restored = restored.size > 0
    taken = np.empty(states, np.uint64)
    hits = np.empty(256 * states, np.uint64)
    actions = np.empty(256 * states, np.int64)
    fired = 0
    for at in range(first, combinations.size):
        if combinations[at] < 0 or keys[at] < 0:
            continue
        if fired + rules > fired_at.size:
            return at, fired
        # Unsigned numbers, for which nobody asks whether they count from the end.
        combination, key = np.uint64(combinations[at]), np.uint64(keys[at])
        for each in range(list_from[combination], list_from[combination + _ONE]):
            last[key, np.uint64(lists[each])] = readings_before + at
        entry = np.uint64(entry_from[combination])
        end = np.uint64(entry_from[combination + _ONE])
        of_key = key * np.uint64(words_of_key)
        while entry < end:
            word = np.uint64(words[entry])
            base = (of_key + word) * np.uint64(states)
            count = np.uint64(0)
            firing = np.uint64(0)
            differ = False
            while entry < end and np.uint64(words[entry]) == word:
                mask = masks[entry]
                letter = np.uint64(letters[entry])
                move = np.uint64(move_from[letter])
                after = np.uint64(move_from[letter + _ONE])
                entry += _ONE
                if after - move == _ONE:
                    leaving = slices[base + moves[move, 0]] & mask
                    slices[base + moves[move, 0]] ^= leaving
                    slices[base + moves[move, 1]] |= leaving
                    if moves[move, 2] != 0 and leaving != 0:
                        hits[count] = leaving
                        actions[count] = moves[move, 2]
                        differ |= actions[count] != actions[0]
                        firing |= leaving
                        count += _ONE
                    continue
                # All leave before any arrives, so that none moves twice.
                for each in range(move, after):
                    leaving = slices[base + moves[each, 0]] & mask
                    slices[base + moves[each, 0]] ^= leaving
                    taken[each - move] = leaving
                for each in range(move, after):
                    leaving = taken[each - move]
                    slices[base + moves[each, 1]] |= leaving
                    if leaving != 0 and moves[each, 2] != 0:
                        hits[count] = leaving
                        actions[count] = moves[each, 2]
                        differ |= actions[count] != actions[0]
                        firing |= leaving
                        count += _ONE
            while firing != 0:
                low = lowest(firing)
                firing &= firing - _ONE
                number = np.uint64(0)
                while differ and (hits[number] >> low) & _ONE == 0:
                    number += _ONE
                rule = (word << np.uint64(6)) + low
                fired_rule[fired] = rule
                fired_at[fired] = at
                fired_action[fired] = actions[number]
                for place in range(width):
                    held = last[key, np.uint64(list_of[rule, place])]
                    if is_restored and held == 0:
                        held = restored[rule, key, place]
                    fired_places[fired, place] = held
                fired += 1
    return combinations.size, fired
