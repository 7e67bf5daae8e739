"""The scanner of JSON lines: it finds the places of wanted values in a block of bytes.

In come bytes and a tree of names; out go, for each line and each name of the tree, the kind of the
value and its place. Every byte of a line is read, so that a line without a flag is valid JSON
without duplicate members. Other lines (with an escape in a name, a number that may not fit, nesting
of more than `DEEPEST` levels, or text that is no JSON) are flagged, and then read singly. `values`
and `texts` make values of places.

The module is long because one loop reads all of JSON, and its parts are inlined into it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.events.kernels.compiling import inner, uncounted
from ensue.events.kernels.texts import hex_digits
from ensue.events.kernels.words import HIGHEST, first_marked, marks_of, repeated

ABSENT, NULL, TRUE, FALSE, WHOLE, REAL, TEXT, ESCAPED, OBJECT, ARRAY = range(10)
"""Kinds of values. A text is `ESCAPED` if it contains a backslash."""

_LINE_BREAKS, _SPACES, _QUOTES, _BACKSLASHES = map(repeated, b'\n "\\')
_IS_PLAIN = np.array([32 <= sign < 128 and sign not in b'"\\' for sign in range(256)])

MIXED = 0x9E3779B97F4A7C15
_MIXED = np.uint64(MIXED)

DEEPEST = 60
MOST_NAMES = 1024
_LONGEST_WHOLE = 18
_LONGEST_NUMBER = 40

OTHER_MEMBERS, OTHER_DATA, BEYOND_ASCII, CLASH = 1, 2, 4, 8
"""Notes on a line: it has members, or data, that are not in the tree; it has bytes beyond ASCII, to
be checked for UTF-8; or it has a member with the name of an attribute of data."""

NO_SLOT, CLASHING = -1, -2
"""In place of a slot: the value is not wanted, or the name is not allowed there."""


@inner
def skip_space(data: Any, place: int, end: int) -> int:
    while place < end and (data[place] == 32 or data[place] == 9 or data[place] == 13):
        place += 1
    return place


@inner
def end_of_plain(data: Any, words: Any, place: int, end: int) -> Any:
    """The next byte of a text that is a quote, a backslash, a control character or beyond ASCII."""
    while place + 8 <= end:
        word = words[place]
        marks = (
            word | (word - _SPACES) & ~word | marks_of(word, _QUOTES) | marks_of(word, _BACKSLASHES)
        )
        if marks & HIGHEST != 0:
            return place + first_marked(marks)
        place += 8
    while place < end and _IS_PLAIN[data[place]]:
        place += 1
    return place


@inner
def end_of_line(data: Any, words: Any, place: int, size: int) -> Any:
    """The next line break, or the end of the block."""
    while place + 8 <= size:
        marks = marks_of(words[place], _LINE_BREAKS)
        if marks & HIGHEST != 0:
            return place + first_marked(marks)
        place += 8
    while place < size and data[place] != 10:
        place += 1
    return place


@inner
def digest_of(data: Any, words: Any, begin: int, end: int) -> Any:
    """A number for a name, which is unique for names of at most eight bytes."""
    length = end - begin
    if begin >= words.size:
        digest = np.uint64(0)
        for place in range(length):
            digest |= np.uint64(data[begin + place]) << np.uint64(8 * place)
        return digest
    if length < 8:
        return words[begin] & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))
    if length == 8:
        return words[begin]
    return words[begin] ^ (words[end - 8] * _MIXED)


@inner
def end_of_number(data: Any, place: int, end: int) -> int:
    """The end of a number; negative for a real, 0 if there is no certain number."""
    begin = place
    is_real = False
    if place < end and data[place] == 45:
        place += 1
    first = place
    while place < end and 48 <= data[place] <= 57:
        place += 1
    if place == first or (data[first] == 48 and place - first > 1):
        return 0
    whole = place - first
    if place < end and data[place] == 46:
        is_real = True
        place += 1
        point = place
        while place < end and 48 <= data[place] <= 57:
            place += 1
        if place == point:
            return 0
    if place < end and (data[place] == 101 or data[place] == 69):
        is_real = True
        place += 1
        if place < end and (data[place] == 43 or data[place] == 45):
            place += 1
        exponent = place
        while place < end and 48 <= data[place] <= 57:
            place += 1
        if place == exponent or place - exponent > 2:
            return 0
    if place - begin > _LONGEST_NUMBER or (not is_real and whole > _LONGEST_WHOLE):
        return 0
    return -place if is_real else place


@inner
def after_escape(data: Any, place: int, end: int) -> int:
    """The end of an escape that begins at a backslash; negative if it is no valid escape."""
    if place + 1 >= end:
        return -1
    letter = data[place + 1]
    if letter != 117:
        known = (
            letter == 34
            or letter == 92
            or letter == 47
            or letter == 98
            or letter == 102
            or letter == 110
            or letter == 114
            or letter == 116
        )
        return place + 2 if known else -1
    code = hex_digits(data, place + 2, end)
    if code < 0 or 0xDC00 <= code < 0xE000:
        return -1
    if code < 0xD800 or code >= 0xE000:
        return place + 6
    if place + 12 > end or data[place + 6] != 92 or data[place + 7] != 117:
        return -1
    low: int = hex_digits(data, place + 8, end)
    if low < 0xDC00 or low >= 0xE000:
        return -1
    return place + 12


@inner
def child_of(node: int, digest: int, data: Any, begin: int, end: int, tree: Any) -> int:
    """The child of a node with the name at a place of the data; 0 if there is none."""
    child_begins, digests, name_begins, names, _, hints, _, _ = tree
    first, last = child_begins[node], child_begins[node + 1]
    count = last - first
    hint = hints[node]
    for step in range(count):
        # Similar lines have their members in the same order.
        place = first + (hint + step) % count
        if digests[place] != digest:
            continue
        name = name_begins[place]
        if name_begins[place + 1] - name != end - begin:
            continue
        at = 0 if end - begin > 8 else end - begin
        while at < end - begin and names[name + at] == data[begin + at]:
            at += 1
        if at == end - begin:
            hints[node] = place - first + 1
            return int(place) + 1
    return 0


def new_stacks() -> tuple[Any, ...]:
    """Stacks for the open objects and arrays of a line."""
    levels, names = DEEPEST + 2, MOST_NAMES
    nodes, slots, firsts, begins, ends = (
        np.empty(count, np.int64) for count in (levels, levels, levels, names, names)
    )
    return nodes, slots, firsts, np.empty(names, np.uint64), begins, ends


@uncounted
def scan_lines(
    data: Any,
    words: Any,
    size: int,
    tree: Any,
    stacks: Any,
    data_node: int,
    limits_extensions: bool,
    records: Any,
    values: Any,
) -> tuple[int, int]:
    """Scan all lines of a block: the number of records, and of lines.

    `tree` has, for each node, the place of its first child (children are numbered from 1 in the
    order of all lists; node 0 is the line itself), their digests and names, the slot of each node
    or -1, the child at which a search begins, and the slots below it. `stacks` has the open objects
    (their node, or -1) and arrays (-2), with their slots, and the names in each object. With
    `limits_extensions` a member that is not in the tree must be text, an integer or a boolean.
    `data_node` is the node of `data`.
    """
    _, _, _, _, slots, _, below_begins, below_slots = tree
    line_begins, line_ends, line_numbers, flagged, notes = records
    kinds, begins, ends = values
    nodes, own_slots, names_from, seen_digests, seen_begins, seen_ends = stacks
    rows, line, position = 0, 0, 0
    while position < size:
        line_end = end_of_line(data, words, position, size)
        line += 1
        begin, end = position, line_end
        position = line_end + 1
        place = begin
        while place < end and (data[place] == 32 or 9 <= data[place] <= 13):
            place += 1
        if place == end:
            continue
        row = rows
        rows += 1
        line_begins[row], line_ends[row], line_numbers[row] = begin, end, line
        note = 0
        is_good = data[place] == 123
        depth = 0
        if is_good:
            nodes[0], own_slots[0], names_from[0] = 0, -1, 0
            depth = 1
            place += 1
        seen = 0
        # What is expected next: 0 a name or the end of an object, 1 a value, 2 a comma or an end,
        # 3 a name, 4 a value or the end of an array.
        expected = 0
        node = -1
        while is_good and depth > 0:
            place = skip_space(data, place, end)
            if place >= end:
                is_good = False
                break
            sign = data[place]
            is_array = nodes[depth - 1] == -2
            if expected == 0 or expected == 3:
                if sign == 125 and expected == 0:
                    place += 1
                    depth -= 1
                    if own_slots[depth] >= 0:
                        ends[own_slots[depth], row] = place
                    seen = names_from[depth]
                    expected = 2
                    continue
                if sign != 34:
                    is_good = False
                    break
                place += 1
                name_begin = place
                while True:
                    place = end_of_plain(data, words, place, end)
                    if place >= end or data[place] < 128:
                        break
                    note |= 4
                    place += 1
                if place >= end or data[place] != 34 or seen >= MOST_NAMES:
                    is_good = False
                    break
                name_end = place
                digest = digest_of(data, words, name_begin, name_end)
                for other in range(names_from[depth - 1], seen):
                    if (
                        seen_digests[other] == digest
                        and seen_ends[other] - seen_begins[other] == name_end - name_begin
                    ):
                        at = 0
                        while (
                            at < name_end - name_begin
                            and data[seen_begins[other] + at] == data[name_begin + at]
                        ):
                            at += 1
                        if at == name_end - name_begin:
                            is_good = False
                if not is_good:
                    break
                seen_digests[seen], seen_begins[seen], seen_ends[seen] = (
                    digest,
                    name_begin,
                    name_end,
                )
                seen += 1
                place = skip_space(data, place + 1, end)
                if place >= end or data[place] != 58:
                    is_good = False
                    break
                place += 1
                parent = nodes[depth - 1]
                node = 0
                if parent >= 0:
                    node = child_of(parent, digest, data, name_begin, name_end, tree)
                    if node == 0:
                        if parent == 0:
                            note |= 1
                        else:
                            note |= 2
                if node > 0 and slots[node] == -2:
                    note |= 8
                    node = 0
                is_other_member = parent == 0 and node == 0
                if node == 0:
                    node = -1
                expected = 1
                if is_other_member and limits_extensions:
                    ahead = skip_space(data, place, end)
                    if ahead < end and (data[ahead] == 123 or data[ahead] == 91):
                        is_good = False
                        break
                continue
            if expected == 2:
                if sign == 44:
                    place += 1
                    expected = 1 if is_array else 3
                    node = -1
                    continue
                if (is_array and sign == 93) or (not is_array and sign == 125):
                    place += 1
                    depth -= 1
                    if own_slots[depth] >= 0:
                        ends[own_slots[depth], row] = place
                    seen = names_from[depth]
                    continue
                is_good = False
                break
            # A value, or the end of an empty array.
            if expected == 4 and sign == 93:
                place += 1
                depth -= 1
                if own_slots[depth] >= 0:
                    ends[own_slots[depth], row] = place
                seen = names_from[depth]
                expected = 2
                continue
            slot = slots[node] if node > 0 else -1
            value_begin = place
            kind = 0
            if sign == 34:
                place += 1
                kind = 6
                while True:
                    place = end_of_plain(data, words, place, end)
                    if place >= end or data[place] == 34 or data[place] < 32:
                        break
                    if data[place] == 92:
                        kind = 7
                        place = after_escape(data, place, end)
                        if place < 0:
                            break
                    else:
                        note |= 4
                        place += 1
                if place < 0 or place >= end or data[place] != 34:
                    is_good = False
                    break
                value_begin += 1
                value_end = place
                place += 1
            elif sign == 123 or sign == 91:
                kind = 8 if sign == 123 else 9
                place += 1
                if depth > DEEPEST:
                    is_good = False
                    break
                own_slots[depth] = slot
                names_from[depth] = seen
                nodes[depth] = -2 if sign == 91 else (node if node > 0 else -1)
                depth += 1
                if slot >= 0:
                    kinds[slot, row] = kind
                    begins[slot, row] = value_begin
                    ends[slot, row] = value_begin
                node = -1
                expected = 0 if sign == 123 else 4
                continue
            elif (
                sign == 116
                and place + 4 <= end
                and data[place + 1] == 114
                and data[place + 2] == 117
                and data[place + 3] == 101
            ):
                kind, value_end = 2, place + 4
                place += 4
            elif (
                sign == 102
                and place + 5 <= end
                and data[place + 1] == 97
                and data[place + 2] == 108
                and data[place + 3] == 115
                and data[place + 4] == 101
            ):
                kind, value_end = 3, place + 5
                place += 5
            elif (
                sign == 110
                and place + 4 <= end
                and data[place + 1] == 117
                and data[place + 2] == 108
                and data[place + 3] == 108
            ):
                kind, value_end = 1, place + 4
                place += 4
                # All values inside of a null are null, but not where all data are null.
                if node > 0 and node != data_node:
                    for below in range(below_begins[node], below_begins[node + 1]):
                        kinds[below_slots[below], row] = 1
            else:
                number_end = end_of_number(data, place, end)
                if number_end == 0:
                    is_good = False
                    break
                kind = 4 if number_end > 0 else 5
                place = abs(number_end)
                value_end = place
                if kind == 5 and limits_extensions and depth == 1 and node < 0:
                    is_good = False
                    break
            if slot >= 0:
                kinds[slot, row] = kind
                begins[slot, row] = value_begin
                ends[slot, row] = value_end
            node = -1
            expected = 2
        if is_good:
            is_good = skip_space(data, place, end) == end
        flagged[row] = not is_good
        notes[row] = note
    return rows, line
