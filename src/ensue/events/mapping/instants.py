"""Instants of whole columns, as `values` reads single ones.

In comes an Arrow column of timestamps, texts or numbers, with a unit or a pattern if it has one;
out go microseconds since 1970, and the rows that are null or were not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.mapping.values import REAL_FACTORS, WHOLE_FACTORS, mapped_instant
from ensue.events.mapping.years import Years
from ensue.events.time_patterns import is_pattern, time_pattern
from ensue.events.times import EARLIEST, EPOCH, LATEST

TIME = pa.timestamp("us", "UTC")
_MINUTE = 60_000_000
_WHOLE_MINUTES_SINCE = 63_072_000_000_000
"""The year 1972, since when the offsets of all zones are whole minutes."""


class ReadInstants(NamedTuple):
    """Instants; `missing` are rows that are null, `unread` rows whose value was not read."""

    values: npt.NDArray[np.int64]
    missing: npt.NDArray[np.bool_]
    unread: npt.NDArray[np.bool_]


def is_time(type_: pa.DataType, unit: str | None) -> bool:
    """Whether a column of a type can have instants; numbers only with a unit or a pattern."""
    kind = pa.types
    if kind.is_dictionary(type_):
        return is_time(type_.value_type, unit)
    if kind.is_null(type_) or is_text(type_):
        return True
    if is_pattern(unit):
        return has_text(type_)
    if unit is None:
        return bool(kind.is_timestamp(type_))
    return bool(kind.is_integer(type_) or kind.is_floating(type_) or kind.is_decimal(type_))


def is_text(type_: pa.DataType) -> bool:
    kind = pa.types
    return bool(kind.is_string(type_) or kind.is_large_string(type_) or kind.is_string_view(type_))


def has_text(type_: pa.DataType) -> bool:
    """Whether values of a type have one text: text itself, numbers, days and clocks."""
    kind = pa.types
    if kind.is_dictionary(type_):
        return has_text(type_.value_type)
    return bool(
        is_text(type_)
        or kind.is_null(type_)
        or kind.is_integer(type_)
        or kind.is_floating(type_)
        or kind.is_date(type_)
        or kind.is_time(type_)
    )


def instants_in(
    column: pa.Array,
    unit: str | None,
    zone: ZoneInfo | None,
    years: Years | None = None,
    near: Any = None,
) -> ReadInstants:
    """The instants of a column for which `is_time` holds.

    `years` finds the years of times of a pattern without one, in the order of the rows; `near` are
    the times of rows that are read again, in microseconds.
    """
    kind = pa.types
    type_ = column.type
    if is_pattern(unit):
        return _of_pattern(texts_of(column), unit or "", zone, years, near)
    if kind.is_dictionary(type_):
        return _of_dictionary(column, unit, zone)
    missing = null_rows(column)
    if kind.is_null(type_):
        return ReadInstants(
            np.zeros(len(column), np.int64), missing, np.zeros(len(column), np.bool_)
        )
    if is_text(type_):
        text = column if kind.is_string(type_) else column.cast(pa.large_string())
        values, unread = _of_numbers_in_text(text, unit) if unit else _of_text(text, zone)
    elif kind.is_timestamp(type_):
        values, unread = _of_timestamps(column, zone)
    else:
        assert unit is not None
        values, unread = _of_numbers(column, unit)
    return ReadInstants(values, missing, unread & ~missing if column.null_count else unread)


def null_rows(column: pa.Array) -> npt.NDArray[np.bool_]:
    """The rows of a column that are null."""
    # Most columns have no null or nothing else, and know it.
    if column.null_count in (0, len(column)):
        return np.full(len(column), column.null_count > 0)
    return np.asarray(column.is_null())


def _of_dictionary(column: pa.Array, unit: str | None, zone: ZoneInfo | None) -> ReadInstants:
    known = instants_in(column.dictionary, unit, zone)
    missing = null_rows(column)
    if not len(known.values):
        return ReadInstants(np.zeros(len(column), np.int64), missing, ~missing)
    places = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
    gone = missing | known.missing[places]
    return ReadInstants(known.values[places], gone, known.unread[places] & ~gone)


def texts_of(column: pa.Array) -> pa.Array:
    """The texts of a column for which `has_text` holds; null for a real number with a fraction."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        is_whole = pc.equal(pc.trunc(column), column)
        # Beyond 64 bits there is no time, and a cast would fail.
        is_whole = pc.and_(is_whole, pc.less(pc.abs(column), 2.0**62))
        column = pc.if_else(is_whole, column, None).cast(pa.int64())
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def joined_columns(columns: Sequence[pa.Array]) -> pa.Array:
    """Columns for which `has_text` holds as one text, with spaces between; null if one is null."""
    return pc.binary_join_element_wise(*map(texts_of, columns), " ")


def _of_pattern(
    text: pa.Array, pattern: str, zone: ZoneInfo | None, years: Years | None, near: Any
) -> ReadInstants:
    from ensue.events.mapping.patterned import instants_of_pattern

    missing = null_rows(text)
    values, read, local = instants_of_pattern(text, time_pattern(pattern), years, near)
    unread = ~read & ~missing
    if zone is not None and local.any():
        values[local], wrong = in_zone(values[local], zone)
        unread[local] |= wrong
    return ReadInstants(values, missing, unread)


def _of_text(text: pa.Array, zone: ZoneInfo | None) -> tuple[Any, Any]:
    """RFC 3339 is read by Arrow, and texts that are not quite that by `patterned`."""
    whole = _cast(text, _LENGTH_WITH_OFFSET, "UTC")
    if whole is not None:
        return whole
    local = _cast(text, _LENGTH, None)
    if local is not None and zone is not None:
        return in_zone(local[0], zone)
    values, unread = np.zeros(len(text), np.int64), ~null_rows(text)
    if local is not None:
        return values, unread
    is_usual = np.asarray(pc.fill_null(pc.match_substring_regex(text, _RFC_3339), False))
    if is_usual.any():
        usual = _cast(text.filter(pa.array(is_usual)), _LENGTH_WITH_OFFSET, "UTC")
        if usual is not None:
            values[is_usual], unread[is_usual] = usual
    others = np.flatnonzero(unread)
    if len(others):
        values[others], unread[others] = _of_other_forms(text.take(pa.array(others)), zone)
    return values, unread


_LENGTH, _LENGTH_WITH_OFFSET = len("2024-05-06T07:08:09"), len("2024-05-06T07:08:09Z")
_RFC_3339 = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})$"
)


def _cast(text: pa.Array, least: int, zone: str | None) -> tuple[Any, Any] | None:
    """Times of texts that Arrow reads, and those outside of the calendar; None if it refuses one.

    Texts have a length of `least` or more: Arrow reads a day and an hour alone, too.
    """
    if (pc.min(pc.binary_length(text)).as_py() or 0) < least:
        return None
    for unit in ("us", "ns"):
        try:
            found = text.cast(pa.timestamp(unit, zone))
        except pa.ArrowInvalid:
            # More digits than a unit has.
            continue
        return _scaled(_filled(found.cast(pa.int64()), 0), unit)
    return None


def _of_other_forms(text: pa.Array, zone: ZoneInfo | None) -> tuple[Any, Any]:
    """The instants of texts that are not quite RFC 3339, and the rows that were not read."""
    from ensue.events.mapping.patterned import instants_of_iso

    values, read, local = instants_of_iso(text)
    unread = ~read
    if zone is None:
        return values, unread | local
    values[local], wrong = in_zone(values[local], zone)
    unread[local] |= wrong
    return values, unread


def whole_numbers_in(text: pa.Array) -> tuple[Any, Any]:
    """The integers of at most 18 digits in a column of text, and the rows that have one."""
    ok = np.asarray(pc.fill_null(pc.match_substring_regex(text, r"^-?[0-9]{1,18}$"), False))
    if not ok.all():
        text = pc.if_else(pa.array(ok), text, "0")
    return text.cast(pa.int64()).to_numpy(), ok


def _of_numbers_in_text(text: pa.Array, unit: str) -> tuple[Any, Any]:
    numbers, ok = whole_numbers_in(text)
    values, unread = _scaled(numbers, unit)
    for row in np.flatnonzero(~ok).tolist():
        value = text[row].as_py()
        unread[row] = False
        try:
            values[row] = 0 if value is None else mapped_instant(value, unit, None)
        except ValueError:
            unread[row] = True
    return values, unread


def _of_timestamps(column: pa.Array, zone: ZoneInfo | None) -> tuple[Any, Any]:
    values, unread = _scaled(_filled(column.cast(pa.int64()), 0), column.type.unit)
    if zone is not None and column.type.tz is None:
        values, wrong = in_zone(values, zone)
        unread = unread | wrong
    return values, unread


def _of_numbers(column: pa.Array, unit: str) -> tuple[Any, Any]:
    if pa.types.is_uint64(column.type):
        large = np.asarray(pc.fill_null(pc.greater(column, 2**63 - 1), False))
        column = pc.if_else(pa.array(large), pa.scalar(0, pa.uint64()), column)
        values, unread = _scaled(_filled(column.cast(pa.int64()), 0), unit)
        return values, unread | large
    if pa.types.is_integer(column.type):
        return _scaled(_filled(column.cast(pa.int64()), 0), unit)
    reals = _filled(column.cast(pa.float64()), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = reals / 1e3 if unit == "ns" else reals * REAL_FACTORS[unit]
        rounded = np.rint(scaled)
        fits = (rounded >= EARLIEST) & (rounded <= LATEST)
    return np.where(fits, rounded, 0).astype(np.int64), ~fits


def _filled(column: pa.Array, zero: Any) -> Any:
    held = pc.fill_null(column, zero) if column.null_count else column
    return held.to_numpy(zero_copy_only=False)


def _scaled(numbers: Any, unit: str) -> tuple[Any, Any]:
    """Integers as microseconds, and the rows that lie outside of the calendar."""
    if unit == "ns":
        values = np.floor_divide(numbers, 1_000)
        return values, (values < EARLIEST) | (values > LATEST)
    factor = WHOLE_FACTORS[unit]
    earliest, latest = -(-EARLIEST // factor), LATEST // factor
    if len(numbers) and earliest <= numbers.min() and numbers.max() <= latest:
        # Nearly always all numbers are in range: the smallest and the largest show it.
        wrong = np.zeros(len(numbers), np.bool_)
        return numbers if factor == 1 else numbers * factor, wrong
    wrong = (numbers < earliest) | (numbers > latest)
    return np.where(wrong, 0, numbers) * factor, wrong


def in_zone(local: Any, zone: ZoneInfo) -> tuple[Any, Any]:
    """The instants of local times (in microseconds, as if in UTC), and the rows without one."""
    wrong = np.zeros(len(local), np.bool_)
    offsets = np.zeros(len(local), np.int64)
    step = np.where(local >= _WHOLE_MINUTES_SINCE, _MINUTE, 1_000_000)
    moments, places = np.unique(local // step * step, return_inverse=True)
    known = np.empty(len(moments), np.int64)
    for number, moment in enumerate(moments.tolist()):
        known[number] = _offset(moment, zone)
    offsets = known[places] if len(moments) else offsets
    wrong |= offsets == _NEVER
    values = np.where(wrong, 0, local - np.where(wrong, 0, offsets))
    return values, wrong | (values < EARLIEST) | (values > LATEST)


_NEVER = 2**62


def _offset(moment: int, zone: ZoneInfo) -> int:
    """The offset of a local time from UTC; `_NEVER` for a time that clocks skip."""
    try:
        naive = (EPOCH + timedelta(microseconds=moment)).replace(tzinfo=None)
        ahead = naive.replace(tzinfo=zone).utcoffset() or timedelta()
        shown = (naive.replace(tzinfo=UTC) - ahead).astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        return _NEVER
    return _NEVER if shown != _plain(naive) else ahead // timedelta(microseconds=1)


def _plain(naive: datetime) -> datetime:
    return naive.replace(fold=0)
