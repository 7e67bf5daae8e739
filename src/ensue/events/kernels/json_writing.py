"""The writing of JSON in columns: texts with their escapes, times, and lines of several parts.

In come columns; out go bytes and the offset of each text. The bytes are those that `cloudevents`
writes for the same values, event by event.
"""

from __future__ import annotations

from typing import Any

from ensue.events.kernels.compiling import inner, uncounted

_DAY = 86_400_000_000


@uncounted
def needs_escapes(data: Any) -> bool:
    for place in range(len(data)):
        sign = data[place]
        if sign < 32 or sign == 34 or sign == 92:
            return True
    return False


@uncounted
def write_strings(data: Any, begins: Any, ends: Any, missing: Any, out: Any, offsets: Any) -> int:
    """Write JSON strings with their quotes, `null` for missing ones; `out` has room for all."""
    at = 0
    for row in range(len(begins)):
        offsets[row] = at
        if missing[row]:
            out[at], out[at + 1], out[at + 2], out[at + 3] = 110, 117, 108, 108
            at += 4
            continue
        out[at] = 34
        at += 1
        for place in range(begins[row], ends[row]):
            sign = data[place]
            if sign >= 32 and sign != 34 and sign != 92:
                out[at] = sign
                at += 1
                continue
            out[at] = 92
            at += 1
            if sign == 34 or sign == 92:
                out[at] = sign
            elif sign == 8:
                out[at] = 98
            elif sign == 9:
                out[at] = 116
            elif sign == 10:
                out[at] = 110
            elif sign == 12:
                out[at] = 102
            elif sign == 13:
                out[at] = 114
            else:
                out[at], out[at + 1], out[at + 2] = 117, 48, 48
                out[at + 3] = 48 + (sign >> 4)
                low = sign & 15
                out[at + 4] = 48 + low if low < 10 else 87 + low
                at += 4
            at += 1
        out[at] = 34
        at += 1
    offsets[len(begins)] = at
    return at


@inner
def write_digits(value: int, count: int, out: Any, at: int) -> int:
    """Write a number with so many digits; the end is returned."""
    for place in range(at + count - 1, at - 1, -1):
        out[place] = 48 + value % 10
        value //= 10
    return at + count


@uncounted
def write_times(values: Any, missing: Any, quoted: bool, out: Any, offsets: Any) -> int:
    """Write RFC 3339 times in UTC, without superfluous digits; `null` for missing ones."""
    at = 0
    for row in range(len(values)):
        offsets[row] = at
        if missing[row]:
            out[at], out[at + 1], out[at + 2], out[at + 3] = 110, 117, 108, 108
            at += 4
            continue
        days = values[row] // _DAY
        rest = values[row] - days * _DAY
        # Years begin in March, so that the leap day is the last of its year.
        shifted = days + 719468
        era = shifted // 146097
        of_era = shifted - era * 146097
        year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
        of_year = of_era - (365 * year + year // 4 - year // 100)
        month = (5 * of_year + 2) // 153
        day = of_year - (153 * month + 2) // 5 + 1
        month = month + 3 if month < 10 else month - 9
        year += era * 400 + (1 if month <= 2 else 0)
        if quoted:
            out[at] = 34
            at += 1
        at = write_digits(year, 4, out, at)
        out[at] = 45
        at = write_digits(month, 2, out, at + 1)
        out[at] = 45
        at = write_digits(day, 2, out, at + 1)
        out[at] = 84
        seconds = rest // 1_000_000
        at = write_digits(seconds // 3600, 2, out, at + 1)
        out[at] = 58
        at = write_digits(seconds // 60 % 60, 2, out, at + 1)
        out[at] = 58
        at = write_digits(seconds % 60, 2, out, at + 1)
        fraction = rest % 1_000_000
        if fraction:
            out[at] = 46
            at = write_digits(fraction, 6, out, at + 1)
            while out[at - 1] == 48:
                at -= 1
        out[at] = 90
        at += 1
        if quoted:
            out[at] = 34
            at += 1
    offsets[len(values)] = at
    return at


@uncounted
def put_texts(data: Any, begins: Any, ends: Any, positions: Any, out: Any) -> None:
    """Write a text for each row at the position of its line."""
    for row in range(len(positions)):
        at = positions[row]
        for place in range(begins[row], ends[row]):
            out[at] = data[place]
            at += 1
        positions[row] = at


@uncounted
def put_constant(data: Any, positions: Any, out: Any) -> None:
    """Write one and the same text at the position of each line."""
    for row in range(len(positions)):
        at = positions[row]
        for place in range(len(data)):
            out[at] = data[place]
            at += 1
        positions[row] = at
