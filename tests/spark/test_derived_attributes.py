"""Attributes that are worked out give on Spark what they give everywhere."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ensue
from ensue.spark import correlate, explain
from tests.agreement.golden import cases_together, golden_trials
from tests.agreement.spark.jobs import differences

LIBRARY = r"""
eventtype Log {
    attribute string text;
    attribute string address = EXTRACT(text, 'from ([0-9.]+)');
    attribute long port = INT(EXTRACT(text, 'port ([0-9]+)'));
    attribute double load = DOUBLE(EXTRACT(text, 'load=([0-9.]+)'));
};
eventtype Out { attribute string address; attribute long ports; attribute double load; };
Out correlation Case (Log a where address != '10.0.0.9' AND port < 1024)
    a{2}
    by address
    having distinct(a.port) > 1
{
    case true: push new Out { address = a.address, ports = distinct(a.port), load = a.load };
}
"""


def test_derived_cases_pass_on_spark(spark: SparkSession) -> None:
    cases = [each for each in golden_trials() if "derived.toml" in each.name]

    assert len(cases) > 10
    assert "\n".join(differences(spark, cases_together(cases), "events")) == ""


@pytest.mark.parametrize("parts", [1, 7])
def test_what_sql_works_out_is_what_python_does(spark: SparkSession, parts: int) -> None:
    """Predicates and a key that are worked out in SQL: the outputs of a table in Python."""
    texts = [
        f"from 10.0.0.{n % 11} port {n * 37 % 1500} load={n / 8}" if n % 5 else f"noise {n}"
        for n in range(600)
    ]
    table = pa.table(
        {
            "id": [str(n) for n in range(600)],
            "type": ["Log"] * 600,
            "time": pa.array([n * 1_000_000 for n in range(600)], pa.timestamp("us", "UTC")),
            "text": texts,
        }
    )
    expected = ensue.correlate(table, LIBRARY).to_pylist()

    made = correlate(spark.createDataFrame(table).repartition(parts), LIBRARY).collect()

    assert sorted(row["id"] for row in made) == sorted(each["id"] for each in expected)
    assert {row["id"]: row["load"] for row in made} == {e["id"]: e["load"] for e in expected}
    assert len(expected) > 20


def test_a_derived_key_needs_no_python_before_the_shuffle(spark: SparkSession) -> None:
    """What is worked out by an expression of Spark is shuffled as columns."""
    frame = spark.createDataFrame([], "id string, type string, time timestamp, text string")

    said = str(explain(frame, LIBRARY))

    assert "before the shuffle, in SQL: what no rule wants" in said
