"""Correlations over Spark DataFrames: a DataFrame of events in, a DataFrame of outputs out.

`dispatch` has the calls, for bounded DataFrames (`batch`) and streams (`streaming`, and `kafka` for
records of Kafka). `plan` groups the rules of a library by key, `sql` says in Spark SQL which rows a
group reads, and `worker` runs the engines over the rows of a partition. What SQL can say exactly
runs in SQL, and all else in the workers, so that rules mean what they mean in the other engines.
Only the DataFrame API is used, which also works through Spark Connect. Only this room imports
PySpark. The names below are imported when they are first used: a command starts Java before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ensue.spark.dispatch import correlate, rejected
    from ensue.spark.explaining import explain
    from ensue.spark.packaging import package

__all__ = ["correlate", "explain", "package", "rejected"]

_HOMES = {
    "correlate": "ensue.spark.dispatch",
    "explain": "ensue.spark.explaining",
    "package": "ensue.spark.packaging",
    "rejected": "ensue.spark.dispatch",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
