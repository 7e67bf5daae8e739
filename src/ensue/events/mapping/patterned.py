"""Whole columns of text as instants, by a pattern of directives or by the forms of ISO 8601.

In come a column of text and a pattern; out go microseconds since 1970, and the rows that were not
read: these are read one by one (`time_patterns`, `times`), which says what is wrong with them. A
regular expression of RE2 takes all texts apart at once, and calendars are arithmetic of NumPy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.mapping.years import Years
from ensue.events.time_patterns import FULL_MONTHS, MONTHS, TimePattern
from ensue.events.times import EARLIEST, ISO_FORMS, LATEST

Micros = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_NO_OFFSET = 2**62


def instants_of_pattern(
    text: pa.Array, pattern: TimePattern, years: Years | None = None, near: Micros | None = None
) -> tuple[Micros, Mask, Mask]:
    """Instants as if in UTC, the rows that were read, and of them those without an offset.

    `years` finds the years that times lack; `near` are the times of rows that are read again.
    """
    parts = _Parts(text, rf"(?i)^\s*(?:{pattern.regex})\s*$", pattern.fields)
    if "s" in pattern.fields:
        whole = parts.number("s")
        return whole * _SECOND + parts.fraction("f"), parts.matched, np.zeros(len(text), np.bool_)
    day = partial(_day_of_pattern, parts)
    clock = _clock(parts)
    if "Y" in parts:
        year = parts.number("Y")
    elif "y" in parts:
        digits = parts.number("y")
        year = digits + np.where(digits >= 69, 1900, 2000)
    elif years is None:
        none = np.zeros(len(text), np.bool_)
        return np.zeros(len(text), np.int64), none, none
    else:

        def local(of_year: int | Micros) -> tuple[Micros, Mask]:
            days, exists = day(np.broadcast_to(np.asarray(of_year, np.int64), len(text)))
            return days * _DAY + clock, exists

        year = years.of_rows(local, parts.matched, near)
    days, exists = day(year)
    values = days * _DAY + clock
    read = parts.matched & exists
    offset = parts.offset("z") if "z" in parts else np.full(len(text), _NO_OFFSET, np.int64)
    if "Z" in parts:
        is_universal = pc.is_in(pc.utf8_upper(parts.text("Z")), pa.array(["Z", "UTC", "GMT"]))
        # Times of any other zone are read one by one.
        read &= np.asarray(is_universal)
        offset = np.zeros(len(text), np.int64)
    return _finished(values, read, offset, parts.fraction("f"))


def instants_of_iso(text: pa.Array) -> tuple[Micros, Mask, Mask]:
    """As `instants_of_pattern`, for the forms of ISO 8601 beside RFC 3339."""
    total = np.zeros(len(text), np.int64)
    read, local = np.zeros(len(text), np.bool_), np.zeros(len(text), np.bool_)
    for form in ISO_FORMS:
        parts = _Parts(text, rf"^(?:{form})$", frozenset("YmdHMSfzZ"))
        days, exists = _date(parts.number("Y"), parts.number("m"), parts.number("d"))
        hour, minute = parts.number("H"), parts.number("M")
        is_good = parts.matched & exists & (hour < 24) & (minute < 60)
        # A leap second is read by itself.
        is_good &= parts.number("S") < 60
        offset = np.where(parts.has("Z"), 0, parts.offset("z"))
        values = days * _DAY + _clock(parts)
        values, good, without = _finished(values, is_good, offset, parts.fraction("f"))
        total = np.where(good, values, total)
        read, local = read | good, local | without
    return total, read, local


class _Parts:
    """The parts of texts by a regular expression with a group for each; 0 where there is none."""

    def __init__(self, text: pa.Array, regex: str, fields: frozenset[str]) -> None:
        self._found = pc.extract_regex(text, regex)
        self._fields = fields
        self.matched: Mask = np.asarray(self._found.is_valid())

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def text(self, name: str) -> pa.Array:
        return pc.fill_null(pc.struct_field(self._found, name), "")

    def has(self, name: str) -> Mask:
        return np.asarray(pc.not_equal(self.text(name), ""))

    def number(self, name: str) -> Micros:
        if name not in self._fields:
            return np.zeros(len(self._found), np.int64)
        text = self.text(name)
        return np.asarray(pc.if_else(pc.equal(text, ""), "0", text).cast(pa.int64()))

    def fraction(self, name: str) -> Micros:
        """Microseconds; further digits are cut off."""
        if name not in self._fields:
            return np.zeros(len(self._found), np.int64)
        digits = pc.utf8_slice_codeunits(self.text(name), 0, 6)
        return np.asarray(pc.utf8_rpad(digits, 6, "0").cast(pa.int64()))

    def offset(self, name: str) -> Micros:
        """An offset from UTC of `Z`, `+02`, `+0200` or `+02:00`; `_NO_OFFSET` for no text."""
        text = self.text(name)
        digits = pc.utf8_rpad(pc.replace_substring_regex(text, "[^0-9]", ""), 4, "0")
        number = np.asarray(digits.cast(pa.int64()))
        minutes = number // 100 * 60 + number % 100
        sign = np.where(np.asarray(pc.starts_with(text, "-")), -60_000_000, 60_000_000)
        found: Micros = np.where(np.asarray(pc.equal(text, "")), _NO_OFFSET, minutes * sign)
        return found


def _day_of_pattern(parts: _Parts, year: Micros) -> tuple[Micros, Mask]:
    """The days since 1970 in a year, and whether the year has them."""
    if "j" in parts:
        first, exists = _date(year, np.ones_like(year), np.ones_like(year))
        next_year, _ = _date(year + 1, np.ones_like(year), np.ones_like(year))
        days = first + parts.number("j") - 1
        return days, exists & (days < next_year)
    if "m" in parts:
        month = parts.number("m")
    else:
        name, known = ("b", MONTHS) if "b" in parts else ("B", FULL_MONTHS)
        places = pc.index_in(pc.utf8_lower(parts.text(name)), pa.array(known))
        month = np.asarray(pc.fill_null(places, -1)).astype(np.int64) + 1
    return _date(year, month, parts.number("d" if "d" in parts else "e"))


def _date(year: Micros, month: Micros, day: Micros) -> tuple[Micros, Mask]:
    """The days since 1970 of a date, and whether there is such a date."""
    first = (year - 1970) * 12 + month - 1
    begins = first.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    ends = (first + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    days = begins + day - 1
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (days < ends) & (year >= 1)
    return days, exists & (year <= 9999)


def _clock(parts: _Parts) -> Micros:
    """The microseconds since midnight, without the fraction of a second."""
    hour = parts.number("H")
    if "I" in parts:
        is_afternoon = np.asarray(pc.equal(pc.utf8_lower(parts.text("p")), "pm"))
        hour = parts.number("I") % 12 + np.where(is_afternoon, 12, 0)
    return (hour * 3600 + parts.number("M") * 60 + parts.number("S")) * _SECOND


def _finished(
    values: Micros, read: Mask, offset: npt.NDArray[Any], fraction: Micros
) -> tuple[Micros, Mask, Mask]:
    """Local times with their offsets and fractions; those outside of the calendar are not read."""
    is_local = offset == _NO_OFFSET
    found = values - np.where(is_local, 0, offset) + fraction
    good = read & (found >= EARLIEST) & (found <= LATEST)
    return np.where(good, found, 0), good, good & is_local
