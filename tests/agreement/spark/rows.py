"""Events of a trial as rows of a DataFrame, and outputs as they come out of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import ensue
from ensue.engine.batch.output.schema import CONTEXT, PROVENANCE
from ensue.events.arrow import table_of
from ensue.events.arrow_types import arrow_type
from ensue.events.columns import extension_column, is_attribute_column
from ensue.events.event import Event
from ensue.spark.outputs import output_columns
from ensue.spark.plan import plan_of
from tests.agreement.trials import Members


def table_of_events(events: Sequence[Event], library: ensue.Library) -> pa.Table:
    """The events in columns, with one for every attribute, whether it occurs or not."""
    types = library.checked.types
    table = table_of(events, types)
    for declared in types:
        for name, type_ in types.attributes(declared.name).items():
            if name not in table.column_names and is_attribute_column(name):
                table = table.append_column(name, pa.nulls(len(table), arrow_type(type_)))
    return table


def frame_of(spark: SparkSession, events: Sequence[Event], library: ensue.Library) -> DataFrame:
    return spark.createDataFrame(table_of_events(events, library))


def as_rows(outputs: Sequence[Members], library: ensue.Library) -> list[Members]:
    """Outputs as rows of the DataFrame that a library gives."""
    columns = output_columns(plan_of(library.checked)).made
    types = library.checked.types
    found = []
    for output in outputs:
        declared = types.attributes(output["type"])
        row = {name: output.get(name) for name in (*CONTEXT, *PROVENANCE)}
        row |= {extension_column(name): output.get(name) for name in columns.extensions}
        held = {name: (output.get("data") or {}).get(name) for name in declared}
        found.append(row | {name: held.get(name) for name in columns.attributes})
    return found


def as_text(members: Mapping[str, Any]) -> str:
    """An output or a row as text with instants as numbers, so that two of them can be compared."""
    return json.dumps(_plain(members), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, datetime):
        # Rows that are collected have the times of this machine.
        return Event.of("x", time=value.astimezone(UTC)).time
    if isinstance(value, str) and value[4:5] == "-" and "T" in value:
        try:
            return Event.of("x", time=value).time
        except ValueError:
            return value
    return value
