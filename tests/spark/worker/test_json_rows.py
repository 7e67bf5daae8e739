"""Rows that travel as JSON come back with the values that they had, whatever their types."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.spark.worker.json_rows import JSON_OPTIONS, arrow_schema, rows_of_json

VALUES = {
    "tinyint": ("127", "-128", "null"),
    "bigint": ("9223372036854775807", "-9223372036854775808", "0"),
    "float": ("0.1f", "float('-Infinity')", "float('3.4028235E38')", "-0.0f"),
    "double": ("0.1d", "5e-324d", "1.7976931348623157E308d", "double('NaN')", "-0.0d", "null"),
    "decimal": ("cast('12345678901234567890123456789.123456789' as decimal(38, 9))", "0.1"),
    "boolean": ("true", "false", "null"),
    "string": ("''", r"'a\n\"b\" \\ ☃ \u0001'", "'NaN'", "'2024-01-01'"),
    "date": ("date'2024-02-29'", "date'0001-01-01'", "date_from_unix_date(2932897)"),
    "timestamp": (
        "timestamp_micros(1706933106123456)",
        "timestamp_micros(-1)",
        "timestamp_micros(253402300800000001)",
        "timestamp_micros(-62198755200000000)",
        "null",
    ),
    "timestamp_ntz": ("timestamp_ntz'2024-03-10 02:30:00.000001'", "timestamp_ntz'1969-12-31'"),
    "array": ("array(1.5d, null, double('Infinity'))", "array()", "null"),
    "struct": (
        "named_struct('at', timestamp_micros(7), 'deep', named_struct('x', 0.1d))",
        "named_struct('at', null, 'deep', named_struct('x', null))",
    ),
    "map of text": ("map('k', 1, 'l', null)", "map()"),
    "map of instants": ("map(timestamp_micros(1706933106123456), array(true))",),
    "map of integers": ("map(-3, date'2024-01-01')",),
    "null": ("null",),
}


def rows_of(spark: SparkSession, values: tuple[str, ...]) -> DataFrame:
    selects = " union all ".join(f"select {each} as `a.value`, 'x' as id" for each in values)
    return spark.sql(f"select struct(*) as row from ({selects})")


@pytest.mark.parametrize("type_", VALUES)
def test_every_value_comes_back_as_it_was(spark: SparkSession, type_: str) -> None:
    rows = rows_of(spark, VALUES[type_])
    row_type = arrow_schema(rows).field("row").type
    texts = rows.select(sf.to_json("row", JSON_OPTIONS)).toArrow().column(0).to_pylist()

    found = rows_of_json(texts, row_type)

    assert shown(found) == shown(rows.toArrow().column("row").combine_chunks().cast(row_type))


def shown(rows: pa.Array) -> list[str]:
    """Values as Arrow shows them: NaN is NaN, and years beyond 9999 are no problem."""
    named = zip(rows.type, rows.flatten(), strict=True)
    return [f"{field.name} {values}" for field, values in named]
