"""How loops are compiled: once, and kept on disk, so that a new process only loads them.

Code on disk is good as long as no source has changed that it was made of: the loop's own, those of
the parts that it calls, and the constants that are written into it. Code that cannot be read,
because it is damaged or names modules that are gone, counts as missing. Loading a loop asks numba
for the code alone, and not for all that compiling needs to know of Python and numpy, which takes a
fifth of a second. A program that wants to tell a person why they wait puts a function into
`before_compiling`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any, cast

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.core.runtime.nrt import rtsys

before_compiling: list[Callable[[], None]] = []
"""Called once, and forgotten, before a loop is compiled that was not found on disk."""


class _KeptCode(FunctionCache):
    """The compiled code of one loop on disk, loaded without what only a compilation needs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        made_of = tuple(_made_of(cast(FunctionType, function), set()))
        files: Any = IndexDataCacheFile
        self._cache_file = files(self._cache_path, self._impl.filename_base, made_of)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # The functions that compiled code calls.
        rtsys.initialize(target_context)
        try:
            found = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:
            # Cut short when it was written, or of a version that had its modules elsewhere.
            found = None
            with suppress(Exception):
                self.flush()  # type: ignore[no-untyped-call]
        if found is None:
            while before_compiling:
                before_compiling.pop()()
            # What numba itself does before it asks the disk.
            target_context.refresh()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        # What cannot be kept is compiled again by the next process.
        with suppress(Exception):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _made_of(function: FunctionType, seen: set[object]) -> Iterator[object]:
    """The state of each source, and each constant, that the code of a function depends on."""
    if function in seen:
        return
    seen.add(function)
    path = function.__code__.co_filename
    if path not in seen:
        seen.add(path)
        with suppress(OSError):
            found = os.stat(path)
            yield found.st_mtime, found.st_size
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher):
            yield from _made_of(cast(Any, value).py_func, seen)
        elif isinstance(value, bool | int | float | str):
            yield name, value


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function as a loop that is compiled at its first call, and kept on disk from then on.

    Where there is no place to keep it (a container that is read-only and has no home, an executor
    of a cluster) every process compiles it for itself.
    """
    loop: Any = njit(nogil=True, **options)(function)
    with suppress(RuntimeError):
        loop._cache = _KeptCode(function)
    return cast(Callable[..., Any], loop)


def uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled loop that makes no arrays, so that no references to arrays are counted in it.

    Each array that is handed from one loop to another would be counted otherwise, which costs many
    times what a step of the loop does.
    """
    return compiled(function, _nrt=False)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of compiled loops, and of nothing else: it is kept with each loop that calls it."""
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    return cast(Callable[..., Any], njit(nogil=True, **options)(function))
