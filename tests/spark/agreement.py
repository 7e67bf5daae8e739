"""Whether Spark agrees with the oracle, for many scenarios in one job.

In come scenarios; out goes, for each way of running, what differs. There are three ways: `bytes`
(rows become events in Python, whole events come out), `columns` (SQL reads the rows, and outputs
have an order) and `fast` (SQL and the batch engine, outputs in any order).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import ensue
from ensue.engine.batch.output.schema import CONTEXT, PROVENANCE
from ensue.events.arrow import table_of
from ensue.events.arrow_types import arrow_type
from ensue.events.columns import is_attribute_column
from ensue.events.times import datetime_of
from ensue.spark import correlate
from ensue.spark.outputs import output_columns
from ensue.spark.plan import plan_of
from tests.oracle.agreement import observe_oracle, read_events
from tests.oracle.filters import TooManyError
from tests.oracle.generator import Scenario

WAYS = ("bytes", "columns", "fast")


def sorted_input(scenario: Scenario) -> Scenario:
    """The scenario as a bounded input, for a batch knows no lateness."""
    return replace(scenario, lateness=None)


def data_frame(spark: SparkSession, scenario: Scenario, library: ensue.Library) -> DataFrame:
    """The events as columns, with one for every attribute, whether it occurs or not."""
    types = library.checked.types
    table = table_of(read_events(scenario, library), types)
    for declared in types:
        for name, type_ in types.attributes(declared.name).items():
            if name not in table.column_names and is_attribute_column(name):
                table = table.append_column(name, pa.nulls(len(table), arrow_type(type_)))
    frame = spark.createDataFrame(table)
    # Partitions are cut at random places, and keep the order of rows.
    return frame.coalesce(Random(scenario.seed).choice([1, 2]))


def observed(spark: SparkSession, scenarios: Sequence[Scenario], way: str) -> list[list[str]]:
    """The outputs of each scenario as text, all of them from one job."""
    parts = []
    for number, scenario in enumerate(scenarios):
        library = ensue.parse(scenario.library)
        until = None if scenario.until is None else datetime_of(scenario.until)
        frame = correlate(
            data_frame(spark, scenario, library),
            library,
            until=until,
            order=way != "fast",
            whole_events=way == "bytes",
            partitions=Random(scenario.seed).choice([1, 2, 3]),
        )
        names = [name for name in frame.columns if name not in ("order", "event")]
        row = sf.to_json(sf.struct(*names), {"ignoreNullFields": "false"})
        text = sf.col("event") if way == "bytes" else row
        order = sf.lit(b"").alias("order") if way == "fast" else sf.col("order")
        parts.append(frame.select(sf.lit(number).alias("n"), order, text.alias("text")))
    found: list[list[str]] = [[] for _ in scenarios]
    for each in reduce(DataFrame.unionAll, parts).orderBy("n", "order").collect():
        found[each["n"]].append(each["text"])
    return found


def expected(scenario: Scenario, way: str) -> list[str]:
    library = ensue.parse(scenario.library)
    outputs = [json.loads(text) for text in observe_oracle(scenario, library).outputs]
    if way == "bytes":
        return [json.dumps(each, sort_keys=True) for each in outputs]
    columns = output_columns(plan_of(library.checked))
    return [json.dumps(_row(each, columns.attributes), sort_keys=True) for each in outputs]


def _row(output: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    data = output.get("data") or {}
    row = {name: output.get(name) for name in (*CONTEXT, *PROVENANCE)}
    return row | {name: data.get(name) for name in attributes}


def differences(spark: SparkSession, scenarios: Sequence[Scenario], way: str) -> list[str]:
    plain = [sorted_input(each) for each in scenarios]
    wrong = []
    for scenario, given in zip(plain, observed(spark, plain, way), strict=True):
        try:
            wanted = expected(scenario, way)
        except TooManyError:
            # The oracle goes through all that is remembered, and gives up where that is too much.
            continue
        got = [_normal(text) for text in given]
        wanted = [_normal(text) for text in wanted]
        if way == "fast":
            wanted, got = sorted(wanted), sorted(got)
        if wanted != got:
            lines = "\n".join(["oracle:", *wanted, "spark:", *got])
            wrong.append(f"{way}: {scenario}\n{lines}")
    return wrong


def _normal(text: str) -> str:
    """JSON with instants in one form, numbers as they are."""
    members = json.loads(text)
    return json.dumps(_plain(members), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, str) and value[4:5] == "-" and "T" in value:
        try:
            return ensue.Event.of("x", time=value).time
        except ValueError:
            return value
    return value
