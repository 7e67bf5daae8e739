"""Instants in SQL are those of Python, for all that people write and much that they do not."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from ensue.events.mapping.values import mapped_instant
from ensue.events.times import EARLIEST, LATEST
from ensue.spark.sql.instants import instant_of_local, instant_of_number, instant_of_text

DATES = ["2024-05-06", "2024-02-29", "2023-02-29", "1582-10-10", "0001-01-01", "9999-12-31"]
DATES += ["0000-01-01", "2024-13-01", "2024-03-31", "2024-10-27", "1900-01-01", "24-05-06", ""]
CLOCKS = [
    "07:08:09",
    "23:59:60",
    "00:00:00",
    "24:00:00",
    "02:30:00",
    "7:08:09",
    "07:08",
    "07:60:00",
]
FRACTIONS = ["", ".5", ".123456", ".1234567", ".", ".9999999", ".000000"]
OFFSETS = ["Z", "z", "+02:00", "-00:00", "+23:59", "-19:30", "+24:00", "+2:00", "", " Z", "Z\n"]
OFFSETS += [" ", "  Z", "UTC", " GMT", "utc", "+0230", "-07", " +0100", "+1", ":00Z", ",5Z"]
BASIC = [
    f"{day}{joint}{clock}{offset}"
    for day in ("20240506", "20230229", "202456", "00000101")
    for joint in ("T", " ", "")
    for clock in ("070809", "0708", "070809.5", "235960", "0708.5", "070809,25", "25")
    for offset in OFFSETS
]
TEXTS = BASIC + [
    f"{date}{joint}{clock}{fraction}{offset}"
    for date in DATES
    for joint in ("T", "t", " ", "_")
    for clock in CLOCKS
    for fraction in FRACTIONS
    for offset in OFFSETS
]
ZONES = [None, "UTC", "Europe/Berlin", "America/St_Johns", "Africa/Monrovia"]


def in_python(value: Any, unit: str | None, zone: str | None) -> int | None:
    try:
        found = mapped_instant(value, unit, None if zone is None else ZoneInfo(zone))
    except ValueError:
        return None
    return found if EARLIEST <= found <= LATEST else None


@pytest.mark.parametrize("zone", ZONES)
def test_text(spark: SparkSession, zone: str | None) -> None:
    texts = TEXTS[:: 1 if zone in (None, "Europe/Berlin") else 7]
    rows = spark.createDataFrame([(each,) for each in texts], "text string").coalesce(1)
    micros = sf.unix_micros(instant_of_text(sf.col("text"), zone))
    known = sf.when(micros.between(EARLIEST, LATEST), micros)

    found = rows.select("text", known.alias("micros")).collect()

    wrong = [
        (row["text"], row["micros"], wanted)
        for row in found
        if row["micros"] != (wanted := in_python(row["text"], None, zone))
    ]
    assert wrong[:10] == []
    assert sum(row["micros"] is not None for row in found) > 100


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("type_", [st.LongType(), st.DoubleType()])
def test_numbers(spark: SparkSession, unit: str, type_: st.DataType) -> None:
    numbers: list[Any] = [0, 1, -1, 999, -999, 1000, -1001, 1_714_978_800, 1_714_978_800_123]
    numbers += [1_714_978_800_123_456_789, -62_135_596_800, 2**62, -(2**62), 2**53 + 1, None]
    if isinstance(type_, st.DoubleType):
        numbers = [None if each is None else float(each) for each in numbers]
        numbers += [0.5, 1.5, 2.5, -0.5, 1_714_978_800.123456, 1e300, float("nan"), float("inf")]
    schema = st.StructType([st.StructField("number", type_)])
    rows = spark.createDataFrame([(each,) for each in numbers], schema).coalesce(1)
    micros = sf.unix_micros(instant_of_number(sf.col("number"), type_, unit))

    found = rows.select(sf.when(micros.between(EARLIEST, LATEST), micros)).collect()

    assert [row[0] for row in found] == [
        None if each is None else in_python(each, unit, None) for each in numbers
    ]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns"])
def test_timestamps_without_a_zone(spark: SparkSession, zone: str) -> None:
    texts = [
        f"2024-{day}T{hour:02}:30:00" for day in ("03-31", "10-27", "05-06") for hour in range(5)
    ]
    rows = spark.createDataFrame([(each,) for each in texts], "text string").coalesce(1)
    shown = sf.concat("text", sf.lit("Z")).cast("timestamp")

    found = rows.select(sf.unix_micros(instant_of_local(shown, zone))).collect()

    assert [row[0] for row in found] == [in_python(each, None, zone) for each in texts]
