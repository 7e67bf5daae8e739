"""What holds for a process that is the `ensue` command and nothing else: a quick start and end.

Python's collector of garbage goes over all modules again and again while they are loaded, finds
nothing, and takes a tenth of a short run for it: it rests until there is work. pyarrow is loaded
without pandas. At the end nothing is taken apart that the system frees anyway.

A program that calls the command from within (`is_own` is False then) keeps its collector, its
pandas and its life.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from typing import Any, NoReturn

is_own = False
"""Whether this process is the command and nothing else."""


def begin() -> None:
    """Take this process for the command's own."""
    global is_own
    is_own = True


def work() -> None:
    """Everything is loaded: collect garbage from now on, and pass over what is there."""
    if is_own:
        gc.freeze()
        gc.enable()


@contextmanager
def loading() -> Iterator[None]:
    """A block in which modules are loaded; garbage is not collected meanwhile."""
    gc.disable()
    try:
        yield
    finally:
        work() if is_own else gc.enable()


def leave(end: SystemExit) -> NoReturn:
    """End the process as was asked, with what stands in its streams written.

    Threads and the functions that were registered for the end have their turn, as in any Python;
    modules and objects are left to the system. An end with a message is Python's to tell.
    """
    if not isinstance(end.code, int | None):
        raise end
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(end.code or 0)


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ImportError(name)


def load_pyarrow() -> None:
    """Load pyarrow, in a process of our own without pandas.

    pyarrow loads pandas where it is installed, to know its objects when it meets them. A run of
    files has none, and a quarter of a second to lose.
    """
    if "pyarrow" in sys.modules or not is_own:
        return
    blocked = _NoPandas()
    sys.meta_path.insert(0, blocked)
    try:
        import pyarrow as pa

        # It looks for pandas once, when it is first given something to convert.
        pa.array([1])
    finally:
        sys.meta_path.remove(blocked)
