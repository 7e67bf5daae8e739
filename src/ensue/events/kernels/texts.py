"""Texts from a block of bytes, copied without the escapes of JSON or CSV.

In come bytes and places; out go the bytes of all texts one after the other, and their ends. A text
with an invalid escape (half a character, an unknown letter) is flagged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.events.kernels.compiling import inner, uncounted

PLAIN, JSON_ESCAPES, DOUBLED_QUOTES = 0, 1, 2
"""The escapes in a text."""


@uncounted
def total_length(begins: Any, ends: Any, present: Any) -> int:
    total = 0
    for row in range(len(begins)):
        if present[row]:
            total += ends[row] - begins[row]
    return total


@inner
def hex_digits(data: Any, place: int, end: int) -> int:
    """The number of four hexadecimal digits; negative if they are none."""
    if place + 4 > end:
        return -1
    number = 0
    for at in range(place, place + 4):
        sign = data[at]
        if 48 <= sign <= 57:
            digit = sign - 48
        elif 97 <= sign <= 102:
            digit = sign - 87
        elif 65 <= sign <= 70:
            digit = sign - 55
        else:
            return -1
        number = number * 16 + digit
    return number


@inner
def write_character(code: int, out: Any, at: int) -> int:
    """Write a character in UTF-8; the end is returned."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | code & 0x3F
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + 1] = 0x80 | code >> 6 & 0x3F
        out[at + 2] = 0x80 | code & 0x3F
        return at + 3
    out[at] = 0xF0 | code >> 18
    out[at + 1] = 0x80 | code >> 12 & 0x3F
    out[at + 2] = 0x80 | code >> 6 & 0x3F
    out[at + 3] = 0x80 | code & 0x3F
    return at + 4


@inner
def unescaped(data: Any, place: int, end: int, out: Any, at: int) -> int:
    """Write a JSON text without its escapes; the end is returned, negative for a bad escape.

    A character is never longer than its escape, so that there is room.
    """
    while place < end:
        sign = data[place]
        if sign != 92:
            out[at] = sign
            at += 1
            place += 1
            continue
        place += 1
        if place >= end:
            return -1
        letter = data[place]
        place += 1
        if letter == 117:
            code = hex_digits(data, place, end)
            place += 4
            if code < 0 or 0xDC00 <= code < 0xE000:
                return -1
            if 0xD800 <= code < 0xDC00:
                if place + 6 > end or data[place] != 92 or data[place + 1] != 117:
                    return -1
                low = hex_digits(data, place + 2, end)
                if low < 0xDC00 or low >= 0xE000:
                    return -1
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                place += 6
            at = write_character(code, out, at)
            continue
        if letter == 34 or letter == 92 or letter == 47:
            out[at] = letter
        elif letter == 98:
            out[at] = 8
        elif letter == 102:
            out[at] = 12
        elif letter == 110:
            out[at] = 10
        elif letter == 114:
            out[at] = 13
        elif letter == 116:
            out[at] = 9
        else:
            return -1
        at += 1
    return at


@uncounted
def copy_texts(
    data: Any, begins: Any, ends: Any, present: Any, how: Any, out: Any, offsets: Any, wrong: Any
) -> Any:
    """Copy the texts of rows one after the other; `how` has the escapes of each row.

    `data` and `out` are each bytes and their words (`words`). Whole words are copied, so that `out`
    needs room for one more: the next text overwrites the surplus.
    """
    data, words = data
    out, out_words = out
    at: Any = np.int64(0)
    for row in range(len(begins)):
        offsets[row] = at
        if not present[row]:
            continue
        begin, end = begins[row], ends[row]
        if how[row] == 0 and end + 8 <= words.size:
            after = at + end - begin
            while at < after:
                out_words[at] = words[begin]
                at += 8
                begin += 8
            at = after
        elif how[row] == 0:
            for place in range(begin, end):
                out[at] = data[place]
                at += 1
        elif how[row] == 1:
            after = unescaped(data, begin, end, out, at)
            if after < 0:
                wrong[row] = True
            else:
                at = after
        else:
            place = begin
            while place < end:
                out[at] = data[place]
                at += 1
                place += 2 if data[place] == 34 else 1
    offsets[len(begins)] = at
    return int(at)
