"""The compiled loops that say which rules want which rows of a batch.

What the arrays mean stands with `many.visits` and `row_lists`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ensue.engine.core.jit import compiled, lowered
from ensue.engine.core.numbering import MULTIPLIER

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
            mixed = (mixed ^ held) * MULTIPLIER
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
def list_visits(
    known: Any, done: int, count: int, reader_from: Any, readers: Any, letters: Any, visits: Any
) -> int:
    """List the rules that read each combination from `done` on, and the letter each of them reads.

    A list of rows has readers: a rule and one of its ports each. `letters` has room for one letter
    a rule. Stops where `visits` has no room for all rules.
    """
    begins, rules, read = visits
    for number in range(done, count):
        at = begins[number]
        if at + letters.size > rules.size:
            return number
        letters[:] = 0
        for word in range(known.shape[1]):
            left = known[number, word]
            while left != 0:
                each = (word << 6) + np.int64(lowest(left))
                left &= left - _ONE
                for reader in range(reader_from[each], reader_from[each + 1]):
                    letters[readers[reader, 0]] |= np.uint8(1 << readers[reader, 1])
        for rule in range(letters.size):
            if letters[rule] != 0:
                rules[at] = rule
                read[at] = letters[rule]
                at += 1
        begins[number + 1] = at
    return count


@compiled
def count_without_key(
    combinations: Any, keys: Any, first: int, end: int, begins: Any, rules: Any, counts: Any
) -> None:
    """Count for each rule the rows that it would read, if they had a key."""
    for row in range(first, end):
        if keys[row] < 0 and combinations[row] >= 0:
            for visit in range(begins[combinations[row]], begins[combinations[row] + 1]):
                counts[rules[visit]] += 1


@compiled
def rows_by_code(codes: Any, count: int) -> Any:
    """The rows of each code, one code after the other, and where each begins; -1 is in none."""
    begins = np.zeros(count + 1, np.int64)
    for row in range(codes.size):
        if codes[row] >= 0:
            begins[codes[row] + 1] += 1
    for code in range(count):
        begins[code + 1] += begins[code]
    at = begins.copy()
    rows = np.empty(begins[count], np.int32)
    for row in range(codes.size):
        code = codes[row]
        if code >= 0:
            rows[at[code]] = row
            at[code] += 1
    return rows, begins


@compiled
def rows_by_key(keys: Any, count: int) -> Any:
    """The rows in the order of their keys, rows of one key in their own; -1 comes first."""
    begins = np.zeros(count + 2, np.int64)
    for row in range(keys.size):
        begins[keys[row] + 2] += 1
    for key in range(count + 1):
        begins[key + 1] += begins[key]
    rows = np.empty(keys.size, np.int32)
    ranks = np.empty(keys.size, np.int32)
    for row in range(keys.size):
        key = keys[row] + 1
        rows[begins[key]] = row
        ranks[row] = begins[key]
        begins[key] += 1
    return rows, ranks
