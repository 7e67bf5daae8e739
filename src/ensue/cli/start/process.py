"""Settings of a process that runs only the `ensue` command: a fast start and a fast end.

While modules are loaded, the garbage collector finds nothing and takes a tenth of a short run, so
it is switched off until the command begins its work. pyarrow is loaded without pandas. At the end,
modules and objects are not torn down, since the system frees their memory anyway.

In a program that calls the command from its own code (`is_own` is False), nothing of this is
changed.
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
"""Whether this process runs only the `ensue` command."""


def begin() -> None:
    """Declare that this process runs only the `ensue` command."""
    global is_own
    is_own = True


def work() -> None:
    """Switch the garbage collector on after loading; it skips all objects that exist by now."""
    if is_own:
        gc.freeze()
        gc.enable()


@contextmanager
def loading() -> Iterator[None]:
    """A block that loads modules, without garbage collection."""
    gc.disable()
    try:
        yield
    finally:
        work() if is_own else gc.enable()


def leave(end: SystemExit) -> NoReturn:
    """End the process with the given exit code, after its streams are flushed.

    Threads are joined and `atexit` functions run, as in any Python process; modules and objects are
    not torn down. An exit with a message is raised for Python to print.
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
    """Load pyarrow, and in a process that runs only the command do so without pandas.

    pyarrow imports pandas if it is installed, to recognise its objects. A run over files has none
    of them, and the import takes a quarter of a second.
    """
    if "pyarrow" in sys.modules or not is_own:
        return
    blocked = _NoPandas()
    sys.meta_path.insert(0, blocked)
    try:
        import pyarrow as pa

        # pyarrow looks for pandas once, at its first conversion.
        pa.array([1])
    finally:
        sys.meta_path.remove(blocked)
