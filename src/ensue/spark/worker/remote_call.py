"""How a worker finds what it is to run, and what it says when it cannot.

In come a function of ours and what it is told; out goes what Spark sends to workers. It names the
function instead of holding it, and travels as its own few lines (Spark's pickling takes this module
by value), so that a worker that has no `ensue` can say so, with what to do, at the end of a trace
of one line. Errors of ours and a lack of memory are told in the same way. Other failures keep all
of their trace, for they are mistakes to be found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pyspark import cloudpickle

_pickling: Any = cloudpickle
_pickling.register_pickle_by_value(sys.modules[__name__])


def called(function: Callable[..., Any], *given: Any) -> Any:
    """The function with what it is told first, in the form that Spark sends to workers."""
    return partial(call, function.__module__, function.__name__, *given)


def call(module: str, name: str, *arguments: Any) -> Iterator[Any]:
    """Runs where there may be nothing but Python and PySpark, so that it brings what it needs."""
    from importlib import import_module

    try:
        function = getattr(import_module(module), name)
        errors = import_module("ensue.errors")
    except ModuleNotFoundError as missing:
        package = (missing.name or "ensue").partition(".")[0]
        raise ModuleNotFoundError(
            f"the Python of the workers has no `{package}`: install `ensue[spark]` there, in"
            " the version that the driver has, or send Ensue with"
            " `spark.addArtifacts(ensue.spark.package(), pyfile=True)` and install what it needs"
        ) from None
    try:
        yield from function(*arguments)
    except errors.EnsueError as error:
        raise error.with_traceback(None) from None
    except MemoryError:
        raise MemoryError(
            "a worker has no memory left for the events of its partition: make more partitions"
            " (`spark.sql.shuffle.partitions`; in a stream, smaller micro-batches), or give workers"
            " more (`spark.executor.pyspark.memory`, `spark.executor.memoryOverhead`)"
        ) from None
