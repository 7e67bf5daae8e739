"""Golden cases on Spark, many in one job.

In come cases; out goes, for each that differs, its name and both sides. Events that a case refuses
are left out, as the reader of a file does; a lateness is left aside where it made nothing late, for
then the order is that of the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ensue.casefile import Case, case_events
from ensue.events.cloudevents import decode
from ensue.events.event import Event
from ensue.library import Library, load, parse
from ensue.spark.batch.events import job_of_events


def differing(spark: SparkSession, cases: Sequence[Case]) -> list[str]:
    runnable = [case for case in cases if not case.expected.late]
    parts = []
    for number, case in enumerate(runnable):
        library = parse(case.library) if isinstance(case.library, str) else load(case.library)
        events = accepted(case, library)
        if events:
            outputs = job_of_events(spark, library, events, case.until).outputs()
            parts.append(outputs.select(sf.lit(number).alias("n"), "order", "event"))
    found: list[list[Event]] = [[] for _ in runnable]
    if parts:
        for row in reduce(DataFrame.unionAll, parts).orderBy("n", "order").collect():
            found[row["n"]].append(decode(row["event"]))
    return [
        f"{case}\nexpected:\n{_shown(case.expected.outputs)}\nspark:\n{_shown(given)}"
        for case, given in zip(runnable, found, strict=True)
        if not _met(case, given)
    ]


def accepted(case: Case, library: Library) -> list[Event]:
    return case_events(case, library.checked.types)[0]


def _met(case: Case, given: Sequence[Event]) -> bool:
    wanted = case.expected.outputs
    return len(wanted) == len(given) and all(
        each.is_met_by(output) for each, output in zip(wanted, given, strict=True)
    )


def _shown(outputs: Sequence[object]) -> str:
    return "\n".join(f"  {each}" for each in outputs)
