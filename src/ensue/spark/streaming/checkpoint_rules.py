"""A micro-batch that was begun is finished with the rules that it was begun with.

In come a checkpoint and the rules that are to run; out goes whether another set of rules has to
finish something first. A query that is stopped, or killed, in the middle of a micro-batch may have
written its outputs already: were it run again with other rules, their outputs of that micro-batch
would be taken for written, and lost. So the text of the rules stands beside what Spark keeps in a
checkpoint. Running them is left to `pipeline`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from ensue.errors import LibraryError, UsageError
from ensue.library import Library, parse

RECORD = "ensue_rules"


def check_place(checkpoint: str) -> None:
    """Raises `UsageError` if there can be no checkpoint there, as far as that can be told."""
    folder = local_folder(checkpoint)
    there = folder
    while there is not None and not there.exists():
        there = there.parent
    if there is None or (there.is_dir() and os.access(there, os.W_OK)):
        return
    what = "cannot be written to by you" if there.is_dir() else "is a file"
    raise UsageError(
        f"there can be no `checkpoint` at `{checkpoint}`, since `{there}` {what}: give a folder"
        " that you may write to, on storage that outlives the stream"
    )


def rules_of_begun(spark: SparkSession, checkpoint: str, library: Library) -> Library | None:
    """The rules that a begun micro-batch belongs to, if they are not these."""
    try:
        recorded = _recorded(spark, checkpoint)
        if recorded is None or recorded == str(library) or not _is_begun(spark, checkpoint):
            return None
        return parse(recorded)
    except (UnicodeDecodeError, LibraryError):
        raise UsageError(
            "the rules that a micro-batch was begun with cannot be read from"
            f" `{checkpoint}/{RECORD}`: put back a copy of the checkpoint, or remove that file, and"
            " the rules that are given finish it"
        ) from None


def record_rules(spark: SparkSession, checkpoint: str, library: Library) -> None:
    """From now on, micro-batches are begun with these rules."""
    folder = local_folder(checkpoint)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f".{RECORD}.new"
        new.write_text(str(library), "utf-8")
        os.replace(new, folder / RECORD)
        return
    rows = spark.createDataFrame([(str(library),)], "value string").coalesce(1)
    rows.write.mode("overwrite").text(f"{checkpoint}/{RECORD}")


def _recorded(spark: SparkSession, checkpoint: str) -> str | None:
    folder = local_folder(checkpoint)
    if folder is not None:
        file = folder / RECORD
        return file.read_text("utf-8") if file.is_file() else None
    try:
        rows = spark.read.text(f"{checkpoint}/{RECORD}", wholetext=True).collect()
    except AnalysisException:
        return None
    return rows[0]["value"].removesuffix("\n") if rows else None


def _is_begun(spark: SparkSession, checkpoint: str) -> bool:
    """Whether the last micro-batch was planned and not committed."""
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


def local_folder(checkpoint: str) -> Path | None:
    """The folder, if it lies on this machine."""
    if checkpoint.startswith("file:"):
        return Path("/" + checkpoint.removeprefix("file:").lstrip("/"))
    return None if ":/" in checkpoint else Path(checkpoint)
