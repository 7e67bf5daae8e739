"""Instants in SQL: what `ensue.events.mapping.values` says of one value, over columns of Spark.

In comes a column of text, numbers or timestamps; out goes a column of timestamps, null where the
value is no instant. Text is read by the grammar of `ensue.events.times`, to the microsecond and
with the leap second, so that SQL and Python take the same rows. Numbers in text and decimals are
left to Python.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ensue.events.mapping.values import WHOLE_FACTORS

_DAY_AND_CLOCK = (
    r"^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})"
    r"(?::([0-9]{2})(?:[.,]([0-9]+))?)?",
    r"^([0-9]{4})([0-9]{2})([0-9]{2})[Tt ]([0-9]{2})([0-9]{2})"
    r"(?:([0-9]{2})(?:[.,]([0-9]+))?)?",
)
_OFFSET = r" ?([Zz]|UTC|GMT|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)"
"""The forms of `ISO_FORMS`, with a group for each part."""
_MINUTE = 60_000_000
_SECOND = 1_000_000
_DIGITS = 6
_LARGEST = 2.0**62
REAL_FACTORS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}

INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
REALS = (st.FloatType, st.DoubleType)


def instant_of_text(text: Column, zone: str | None) -> Column:
    """Text of ISO 8601 as a timestamp; without an offset it is local time in a `zone`."""
    offset = rf"{_OFFSET}\z" if zone is None else rf" ?(?:{_OFFSET[2:]})?\z"
    extended, basic = (_parsed(text, f"{form}{offset}", zone) for form in _DAY_AND_CLOCK)
    return sf.coalesce(extended, basic)


def _parsed(text: Column, pattern: str, zone: str | None) -> Column:
    year, month, day, hour, minute, second, fraction, offset = (
        sf.regexp_extract(text, pattern, number) for number in range(1, 9)
    )
    is_leap = second == "60"
    plain_second = sf.when(is_leap, sf.lit("59")).when(second == "", sf.lit("00")).otherwise(second)
    date, clock = sf.concat_ws("-", year, month, day), sf.concat_ws(":", hour, minute, plain_second)
    whole = sf.unix_micros(sf.concat(date, sf.lit("T"), clock, sf.lit("Z")).try_cast("timestamp"))
    digits = sf.rpad(sf.substring(fraction, 1, _DIGITS), _DIGITS, "0")
    # The second `:60` is the first instant of the next minute, whatever stands behind it.
    finer = sf.when(is_leap, sf.lit(_SECOND)).otherwise(
        sf.when(fraction == "", sf.lit(0)).otherwise(digits.try_cast("bigint"))
    )
    micros = whole + finer
    plain_offset = sf.regexp_replace(offset, ":", "")
    sign = sf.when(sf.substring(offset, 1, 1) == "-", sf.lit(-1)).otherwise(sf.lit(1))
    hours = sf.substring(plain_offset, 2, 2).try_cast("bigint")
    minutes = sf.coalesce(sf.substring(plain_offset, 4, 2).try_cast("bigint"), sf.lit(0))
    shift = sf.when(sf.lower(offset).isin("z", "utc", "gmt"), sf.lit(0)).otherwise(
        sign * (hours * sf.lit(60) + minutes) * sf.lit(_MINUTE)
    )
    known = sf.timestamp_micros(micros - shift)
    if zone is not None:
        local = instant_of_local(sf.timestamp_micros(micros), zone)
        known = sf.when(offset == "", local).otherwise(known)
    return sf.when(text.rlike(pattern), known)


def instant_of_local(shown: Column, zone: str) -> Column:
    """The instant at which the clocks of a zone show what a clock in UTC shows at `shown`.

    Of two such instants it is the first; null for a time that the clocks leave out.
    """
    instant = sf.to_utc_timestamp(shown, zone)
    return sf.when(sf.from_utc_timestamp(instant, zone) == shown, instant)


def instant_of_number(number: Column, type_: st.DataType, unit: str) -> Column:
    """Numbers since 1970, whole or real, as timestamps."""
    if isinstance(type_, REALS):
        scaled = sf.rint(number.cast("double") * sf.lit(REAL_FACTORS[unit]))
        if unit == "ns":
            scaled = sf.rint(number.cast("double") / sf.lit(1e3))
        # Beyond that it lies outside of all calendars, and a cast would fail.
        return sf.when(
            sf.abs(scaled) < sf.lit(_LARGEST), sf.timestamp_micros(scaled.cast("bigint"))
        )
    whole = number.cast("bigint")
    if unit == "ns":
        # Integer division goes towards zero, and what is finer than a microsecond is cut off
        # downwards.
        below = sf.pmod(whole, sf.lit(1000)) > 0
        down = sf.when(below & (whole < 0), sf.lit(1)).otherwise(sf.lit(0))
        return sf.timestamp_micros(sf.call_function("div", whole, sf.lit(1000)) - down)
    return sf.timestamp_micros(sf.try_multiply(whole, sf.lit(WHOLE_FACTORS[unit])))
