"""A bucket's states in Spark's state store, and what Spark calls with them.

In come the chunks of a bucket; out goes what `bucket.run_bucket` makes of them. Spark pickles this
module by value, as `worker.remote_call`, through which it finds Ensue on the worker.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ensue.errors import UsageError
from ensue.spark.worker.remote_call import call_by_name

_pickling: Any = cloudpickle
_pickling.register_pickle_by_value(sys.modules[__name__])

_SAVED = "saved binary"
_STORE = "spark.sql.streaming.stateStore"
PROVIDER = f"{_STORE}.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = f"{_STORE}.rocksdb.changelogCheckpointing.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
_MANY_PARTITIONS = 200


class BucketProcessor(StatefulProcessor):
    """Hands each bucket with its states to a function that is found by its name."""

    def __init__(self, function: tuple[str, str], task: tuple[Any, ...], carried: bytes) -> None:
        self._function, self._task, self._carried = function, task, carried

    def init(self, handle: Any) -> None:
        self._states = (
            handle.getValueState("head", _SAVED),
            handle.getMapState("parts", "number int", _SAVED),
            handle.getMapState("slices", "number int", _SAVED),
        )

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        given = (self._task, key, rows, self._states)
        yield from call_by_name(self._carried, *self._function, *given)

    def close(self) -> None:
        """Spark closes the states."""


def prepare_store(spark: SparkSession) -> None:
    """Choose the state store that keeps parts apart, where the session has not chosen.

    Raises `UsageError` where it has chosen one that cannot.
    """
    try:
        import_module("google.protobuf")
    except ModuleNotFoundError:
        raise UsageError(
            "Spark keeps the state of streams for Python with `protobuf`, which is not installed:"
            " install `ensue[spark]` again, here and where the workers run"
        ) from None
    chosen = spark.conf.getAll
    provider = chosen.get(PROVIDER, _ROCKSDB)
    if "RocksDB" not in provider:
        raise UsageError(
            f"the session keeps states with `{provider}`, which writes all of a state where a part"
            f' has changed: write `spark.conf.set("{PROVIDER}", "{_ROCKSDB}")`, or leave out the'
            " setting"
        )
    for name, value in ((PROVIDER, _ROCKSDB), (_CHANGELOG, "true")):
        if name not in chosen:
            spark.conf.set(name, value)


def mention_many_partitions(spark: SparkSession) -> None:
    """Warn of the number of partitions that Spark has by itself."""
    if _PARTITIONS in spark.conf.getAll:
        return
    import warnings

    partitions = spark.conf.get(_PARTITIONS, str(_MANY_PARTITIONS))
    warnings.warn(
        f"each micro-batch will have {partitions} tasks, Spark's default, each of which commits a"
        " state: for a stream, set about as many as there are cores before its first start, as"
        f' `spark.conf.set("{_PARTITIONS}", "8")`',
        stacklevel=2,
    )
