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

_OFFSET = r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_PARTS = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
_WITH_OFFSET = rf"{_PARTS}({_OFFSET})\z"
_WITH_ANY = rf"{_PARTS}({_OFFSET})?\z"
_MINUTE = 60_000_000
_SECOND = 1_000_000
_DIGITS = 6
_LARGEST = 2.0**62
REAL_FACTORS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}

INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
REALS = (st.FloatType, st.DoubleType)


def instant_of_text(text: Column, zone: str | None) -> Column:
    """RFC 3339 text as a timestamp; without an offset it is local time in a `zone`."""
    return _parsed(text, _WITH_OFFSET if zone is None else _WITH_ANY, zone)


def _parsed(text: Column, pattern: str, zone: str | None) -> Column:
    date, clock, second, fraction, offset = (
        sf.regexp_extract(text, pattern, number) for number in range(1, 6)
    )
    is_leap = second == "60"
    plain_second = sf.when(is_leap, sf.lit("59")).otherwise(second)
    shown = sf.concat(date, sf.lit("T"), clock, sf.lit(":"), plain_second, sf.lit("Z"))
    whole = sf.unix_micros(shown.try_cast("timestamp"))
    digits = sf.rpad(sf.substring(fraction, 1, _DIGITS), _DIGITS, "0")
    # The second `:60` is the first instant of the next minute, whatever stands behind it.
    finer = sf.when(is_leap, sf.lit(_SECOND)).otherwise(
        sf.when(fraction == "", sf.lit(0)).otherwise(digits.try_cast("bigint"))
    )
    micros = whole + finer
    sign = sf.when(sf.substring(offset, 1, 1) == "-", sf.lit(-1)).otherwise(sf.lit(1))
    hours = sf.substring(offset, 2, 2).try_cast("bigint")
    minutes = sf.substring(offset, 5, 2).try_cast("bigint")
    shift = sf.when(sf.lower(offset) == "z", sf.lit(0)).otherwise(
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
