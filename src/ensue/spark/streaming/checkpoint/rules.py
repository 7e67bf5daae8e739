"""The rules of a checkpoint: a planned micro-batch runs with the rules it was planned with.

In come a checkpoint and the rules that are to run; out go other rules, if they have to finish a
planned micro-batch first. A query that is killed inside a micro-batch may have written outputs of
it. If it ran again with other rules, Spark would take the outputs of those rules for written, and
they would be lost. So the text of the rules is stored in the folder of the checkpoint. `pipeline`
runs the queries.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from ensue.errors import LibraryError, UsageError
from ensue.library import Library, parse
from ensue.spark.streaming.checkpoint.folder import local_folder
from ensue.spark.streaming.checkpoint.signing import signed_text, unsigned_text

RULES_FILE = "ensue_rules"


def rules_of_planned_batch(
    spark: SparkSession, checkpoint: str, library: Library, key: bytes | None = None
) -> Library | None:
    """The rules of a micro-batch that was planned and not committed, if they are not `library`.

    With a `key`, only rules that are signed with it.
    """
    try:
        recorded = unsigned_text(_recorded(spark, checkpoint), key, RULES_FILE)
        if (
            recorded is None
            or recorded == library.running_text
            or not _has_uncommitted_batch(spark, checkpoint)
        ):
            return None
        return parse(recorded)
    except (UnicodeDecodeError, LibraryError):
        raise UsageError(
            "the rules that a micro-batch was begun with cannot be read from"
            f" `{checkpoint}/{RULES_FILE}`: put back a copy of the checkpoint, or remove that file,"
            " and the rules that are given finish it"
        ) from None


def record_rules(
    spark: SparkSession, checkpoint: str, library: Library, key: bytes | None = None
) -> None:
    """Stores the rules with which micro-batches are planned from now on."""
    text = signed_text(library.running_text, key, RULES_FILE)
    folder = local_folder(checkpoint)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f".{RULES_FILE}.new"
        new.write_text(text, "utf-8")
        os.replace(new, folder / RULES_FILE)
        return
    rows = spark.createDataFrame([(text,)], "value string").coalesce(1)
    rows.write.mode("overwrite").text(f"{checkpoint}/{RULES_FILE}")


def _recorded(spark: SparkSession, checkpoint: str) -> str | None:
    folder = local_folder(checkpoint)
    if folder is not None:
        file = folder / RULES_FILE
        return file.read_text("utf-8") if file.is_file() else None
    try:
        rows = spark.read.text(f"{checkpoint}/{RULES_FILE}", wholetext=True).collect()
    except AnalysisException:
        return None
    return rows[0]["value"].removesuffix("\n") if rows else None


def _has_uncommitted_batch(spark: SparkSession, checkpoint: str) -> bool:
    """Whether the last planned micro-batch was not committed."""
    planned, committed = (_numbers(spark, checkpoint, each) for each in ("offsets", "commits"))
    return max(planned, default=-1) > max(committed, default=-1)


def _numbers(spark: SparkSession, checkpoint: str, log: str) -> list[int]:
    folder = local_folder(checkpoint)
    names: Iterable[str]
    if folder is not None:
        names = [each.name for each in (folder / log).glob("*")]
    else:
        try:
            files = spark.read.format("binaryFile").load(f"{checkpoint}/{log}")
            last = sf.element_at(sf.split("path", "/"), -1)
            names = [row["name"] for row in files.select(last.alias("name")).collect()]
        except AnalysisException:
            names = []
    return [int(name) for name in names if name.isdigit()]
