"""Functions in the form in which Spark sends them to workers.

In come a function and the task that is its first argument; out goes a callable for `mapInArrow` and
its kin. It holds the name of the function instead of the function, and Spark pickles this module by
value, so that a worker without `ensue` can take it from what the function carries
(`spark.packaging`), or report that it is missing in one line, with what to do. `EnsueError` and a
lack of memory are reported in one line too. Any other failure keeps its whole traceback, for it is
a mistake in the code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pyspark import cloudpickle

_pickling: Any = cloudpickle
_pickling.register_pickle_by_value(sys.modules[__name__])


def for_workers(function: Callable[..., Any], task: tuple[Any, ...], carried: bytes = b"") -> Any:
    """The function with its task, which travels as a plain tuple; `carried` is an archive of the
    package for workers that have none."""
    names = function.__module__, function.__name__
    return partial(call_by_name, carried, *names, tuple(task))


def call_by_name(carried: bytes, module: str, name: str, *arguments: Any) -> Iterator[Any]:
    """Call a function on a worker, imported there by name: only Python and PySpark are certain."""
    import gc
    from importlib import import_module
    from sys import modules

    is_new = module not in modules
    try:
        try:
            function = getattr(import_module(module), name)
        except ModuleNotFoundError as missing:
            if not carried or (missing.name or "").partition(".")[0] != "ensue":
                raise
            unpack(carried)
            function = getattr(import_module(module), name)
        errors = import_module("ensue.errors")
    except ModuleNotFoundError as missing:
        package = (missing.name or "ensue").partition(".")[0]
        raise ModuleNotFoundError(
            f"the Python of the workers has no `{package}`: install `ensue[spark]` there, in"
            " the version that the driver has, or send Ensue with"
            " `spark.addArtifacts(ensue.spark.package(), pyfile=True)` and install what it needs"
        ) from None
    if is_new:
        # Spark collects garbage after every task, which would look at all that was imported.
        gc.freeze()
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


def unpack(carried: bytes) -> None:
    """Put the package that a function has brought where this worker imports it from."""
    import os
    import sys
    import tempfile
    from hashlib import blake2b
    from importlib import invalidate_caches

    from pyspark import SparkFiles

    # The folder of the application on this machine, which Spark removes with it.
    folder = SparkFiles.getRootDirectory()
    place = os.path.join(folder, f"ensue-{blake2b(carried, digest_size=16).hexdigest()}.zip")
    if not os.path.exists(place):
        handle, written = tempfile.mkstemp(dir=folder)
        with open(handle, "wb") as out:
            out.write(carried)
        os.replace(written, place)  # workers beside this one see all of it or nothing
    for name in [each for each in sys.modules if each.partition(".")[0] == "ensue"]:
        del sys.modules[name]  # a folder without a package, which was imported in its stead
    sys.path.insert(0, place)
    invalidate_caches()
