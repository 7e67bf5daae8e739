"""Whether a stream, however it is cut, agrees with the oracle on a scenario.

In comes a scenario and a seed; out goes what differs, or nothing. The events are put in an order of
arrival in which none is late, cut into micro-batches and those into partitions, and end with a
heartbeat, up to which (less the lateness) the oracle lets its clock run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import ensue
from ensue.engine.batch.output.schema import CONTEXT, PROVENANCE
from ensue.events.arrow import table_of
from ensue.events.arrow_types import arrow_type
from ensue.events.columns import is_attribute_column
from ensue.events.event import Event
from ensue.spark.outputs import output_columns
from ensue.spark.plan import plan_of
from ensue.spark.streaming.bucket import KIND, LEFT_OUT, PROBLEMS
from ensue.spark.streaming.job import StreamJob, StreamOptions
from tests.oracle.agreement import observe_oracle, read_events
from tests.oracle.generator import Scenario

from .cutting import HEARTBEAT, cut, shuffled_within
from .simulation import SimulatedStream

LATENESSES = (0, 1_000_000, 5_000_000)


def frame_of(spark: SparkSession, events: Sequence[Event], library: ensue.Library) -> DataFrame:
    types = library.checked.types
    table = table_of(events, types)
    for declared in types:
        for name, type_ in types.attributes(declared.name).items():
            if name not in table.column_names and is_attribute_column(name):
                table = table.append_column(name, pa.nulls(len(table), arrow_type(type_)))
    return spark.createDataFrame(table).coalesce(1)


def difference(
    spark: SparkSession, scenario: Scenario, seed: int, form: str | None = None
) -> str | None:
    random = Random(seed)
    library = ensue.parse(scenario.library)
    lateness = random.choice(LATENESSES)
    given = sorted(read_events(scenario, library), key=lambda event: event.time)
    if not given:
        return None
    end = given[-1].time + random.randrange(10_000_000)
    order = shuffled_within([event.time for event in given], lateness, random)
    heartbeat = Event("heartbeat", "test", HEARTBEAT, end + lateness, None, {})
    arriving = [*(given[place] for place in order), heartbeat]
    job = StreamJob.of(
        frame_of(spark, arriving, library),
        library,
        options=StreamOptions(
            lateness=timedelta(microseconds=lateness),
            buckets=random.choice([1, 2, 5]),
            whole_events=form == "events",
        ),
    )
    rows = job.rows().toArrow()
    stream = SimulatedStream(job.task)
    found: list[dict[str, Any]] = []
    for piece in cut(range(len(rows)), random):
        partitions = [rows.slice(part[0], len(part)) for part in cut(piece, random, 3)]
        found += stream.read(partitions)
    wanted = expected(replace(scenario, lateness=None, until=end), library)
    got = sorted(_text(row) for row in found)
    if wanted == got:
        return None
    how = f"// cut with seed {seed}, lateness {lateness}, in {job.task.form}"
    return "\n".join([how, str(scenario), "oracle:", *wanted, "stream:", *got])


def expected(scenario: Scenario, library: ensue.Library) -> list[str]:
    outputs = [json.loads(text) for text in observe_oracle(scenario, library).outputs]
    attributes = output_columns(plan_of(library.checked)).attributes
    rows = []
    for output in outputs:
        data = output.get("data") or {}
        row = {name: output.get(name) for name in (*CONTEXT, *PROVENANCE)}
        rows.append(_text(row | {name: data.get(name) for name in attributes}))
    return sorted(rows)


def _text(row: dict[str, Any]) -> str:
    aside = (KIND, LEFT_OUT, PROBLEMS, "event")
    kept = {name: _plain(value) for name, value in row.items() if name not in aside}
    if row.get(KIND) == "late":
        kept[KIND] = "late"
    return json.dumps(kept, sort_keys=True)


def _plain(value: Any) -> Any:
    """Instants in one form, as numbers."""
    if hasattr(value, "isoformat"):
        return ensue.Event.of("x", time=value.isoformat()).time
    if isinstance(value, str) and value[4:5] == "-" and "T" in value:
        try:
            return ensue.Event.of("x", time=value).time
        except ValueError:
            return value
    return value
