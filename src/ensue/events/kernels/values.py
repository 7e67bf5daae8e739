"""Values of many texts at once: RFC 3339 times and integers.

In come bytes and, for each row, the begin and end of its text; out go numbers, and for each row
whether it was read. A text that these loops do not read may still be valid (a leap second, `+5`, a
number beyond 64 bits): its row is then read singly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.events.kernels.compiling import inner, uncounted

UNREAD, READ, LOCAL = 0, 1, 2
"""A time was not read, was read with its offset, or has no offset."""

_DAY = 86_400_000_000


@inner
def digits(data: Any, begin: int, count: int) -> int:
    """The number of so many digits; negative if there is another character."""
    number = 0
    for place in range(begin, begin + count):
        digit = data[place] - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@inner
def days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970 to a date of the Gregorian calendar."""
    # Years begin in March, so that the leap day is the last of its year.
    y = year - 1 if month <= 2 else year
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@inner
def days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@uncounted
def parse_times(
    data: Any, begins: Any, ends: Any, earliest: int, latest: int, out: Any, how: Any
) -> int:
    """Read RFC 3339 texts as microseconds since 1970; the number of texts read is returned."""
    read = 0
    date_of, days = -1, 0
    # An inlined function would be compiled anew for each literal number in a call.
    two, four = np.int64(2), np.int64(4)
    for row in range(len(begins)):
        begin, end = begins[row], ends[row]
        how[row] = 0
        out[row] = 0
        if end - begin < 19:
            continue
        if (
            data[begin + 4] != 45
            or data[begin + 7] != 45
            or data[begin + 13] != 58
            or data[begin + 16] != 58
        ):
            continue
        joint = data[begin + 10]
        if joint != 84 and joint != 116 and joint != 32:
            continue
        year = digits(data, begin, four)
        month = digits(data, begin + 5, two)
        day = digits(data, begin + 8, two)
        hour = digits(data, begin + 11, two)
        minute = digits(data, begin + 14, two)
        second = digits(data, begin + 17, two)
        if year < 1 or month < 1 or month > 12 or day < 1 or hour < 0 or hour > 23:
            continue
        if minute < 0 or minute > 59 or second < 0 or second > 59:
            continue
        date = (year * 16 + month) * 32 + day
        if date != date_of:
            if day > days_in_month(year, month):
                continue
            days = days_from_civil(year, month, day)
            date_of = date
        instant = days * _DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000
        place = begin + 19
        if place < end and data[place] == 46:
            place += 1
            first = place
            scale = 100_000
            while place < end and 48 <= data[place] <= 57:
                instant += (data[place] - 48) * scale
                scale //= 10
                place += 1
            if place == first:
                continue
        if place == end:
            how[row] = 2
            out[row] = instant
            read += 1
            continue
        sign = data[place]
        if sign == 90 or sign == 122:
            if place + 1 != end:
                continue
        elif sign == 43 or sign == 45:
            if place + 6 != end or data[place + 3] != 58:
                continue
            hours, minutes = digits(data, place + 1, two), digits(data, place + 4, two)
            if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
                continue
            offset = (hours * 60 + minutes) * 60_000_000
            instant += -offset if sign == 43 else offset
        else:
            continue
        if instant < earliest or instant > latest:
            continue
        how[row] = 1
        out[row] = instant
        read += 1
    return read


@uncounted
def parse_whole_numbers(data: Any, begins: Any, ends: Any, out: Any, ok: Any) -> int:
    """Read integers of at most 18 digits; the number of texts read is returned."""
    read = 0
    for row in range(len(begins)):
        place, end = begins[row], ends[row]
        ok[row] = False
        out[row] = 0
        is_negative = place < end and data[place] == 45
        if is_negative:
            place += 1
        if place == end or end - place > 18:
            continue
        number = 0
        while place < end:
            digit = data[place] - 48
            if digit < 0 or digit > 9:
                break
            number = number * 10 + digit
            place += 1
        if place < end:
            continue
        out[row] = -number if is_negative else number
        ok[row] = True
        read += 1
    return read
