"""A table of rules that is read again while a stream runs; each row is a piece of the library.

In come a session and the `[rules]` of a configuration; out go the texts of the table by name, and
the library of all texts in the order of their names. In diagnostics the name of a row stands where
the name of a file would. The table detects changes; the caller decides what becomes of the running
stream.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from ensue.engine.changing import checked_source
from ensue.errors import UsageError
from ensue.lang.source import Source
from ensue.library import Library, duration_microseconds
from ensue.spark.failures import FAILURES, reason_of
from ensue.spark.streaming.config import RulesConfig

NEEDED = ("name", "text")


class WatchedTable:
    """The rules of a table as of the last look."""

    def __init__(
        self,
        spark: SparkSession,
        rules: RulesConfig,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        self._spark = spark
        self._rules = rules
        self._parameters = parameters or {}
        self._seconds = duration_microseconds(rules.every) / 1_000_000
        self._texts = read_texts(spark, rules)
        self._told = ""
        self._next_look = time.monotonic() + self._seconds

    @property
    def shown(self) -> str:
        """The table of rules as messages name it."""
        return f"table {self._rules.place}"

    def have_changed(self) -> bool:
        """Whether a row has come, gone or been written; the table is looked at now and then.

        Raises `UsageError` if it cannot be read, as while it is being rewritten; the same is not
        said at every look.
        """
        if time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + self._seconds
        try:
            found = read_texts(self._spark, self._rules)
        except UsageError as error:
            told, self._told = self._told, str(error)
            if told == self._told:
                return False
            raise
        before, self._texts, self._told = self._texts, found, ""
        return found != before

    def load(self) -> Library:
        """Raises `LibraryError` with every mistake, by the name of its row."""
        pieces = tuple((f"{name} in {self.shown}", text) for name, text in self._texts.items())
        return Library(checked_source(Source(pieces), None, self._parameters))


def read_texts(spark: SparkSession, rules: RulesConfig) -> Mapping[str, str]:
    """The texts of a table by their names, sorted. Raises `UsageError`."""
    try:
        reader: Any = spark.read.format(rules.format).options(**rules.options)
        table = spark.table(rules.table) if rules.table else reader.load(rules.path)
        missing = [name for name in NEEDED if name not in table.columns]
        if missing:
            raise UsageError(
                f"the rules in {rules.place} have no column `{missing[0]}`: a row has a `name` and"
                " a `text`, which is a piece of the library"
            )
        rows = table.select(*NEEDED).collect()
    except FAILURES as error:
        raise UsageError(f"the rules in {rules.place} cannot be read: {reason_of(error)}") from None
    found = sorted((str(row["name"]), str(row["text"])) for row in rows if row["text"])
    names = [name for name, _ in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"the rules in {rules.place} have two rows `{twice[0]}`: remove one")
    if not found:
        raise UsageError(f"the rules in {rules.place} are empty: a stream needs at least one rule")
    return dict(found)
