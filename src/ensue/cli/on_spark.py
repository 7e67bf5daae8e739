"""`ensue run --engine spark`: what differs from a run in this process, which is little.

PySpark is loaded only here, when it is asked for, and a machine that lacks it is told what to
install. What streams (`--lateness`) and what explains itself as it goes (`--explain`) is refused.
"""

from __future__ import annotations

from typing import cast

from ensue.engine.run import Run
from ensue.errors import UsageError
from ensue.library import Library

SPARK = "spark"


def start_on_spark(
    library: Library, correlation: str | None, lateness: int | None, explain: bool
) -> Run:
    """A run that gathers its events and has Spark run them when it is finished."""
    if lateness is not None:
        raise UsageError(
            "`--engine spark` reads a bounded input in the order of its times: leave out"
            " `--lateness`, or choose another engine"
        )
    if explain:
        raise UsageError("`--explain` needs an engine that runs here: choose `step`")
    try:
        from ensue.spark.command import CollectedRun
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise UsageError(
            "`--engine spark` needs PySpark: install `ensue[spark]`, and Java 17"
        ) from None
    # It answers as a `Run` does in all that a bounded input asks of it.
    return cast(Run, CollectedRun(library, correlation))
