"""The compilation of loops, with a cache on disk that new processes load.

Code in the cache is valid as long as its sources have not changed: the loop, the functions that it
calls, and the constants in it. Code that cannot be read, because it is damaged or refers to modules
that are gone, counts as missing. A loop is loaded without numba's knowledge of Python and numpy,
which only a compilation needs and which takes a fifth of a second. A program that tells users why
they wait puts a function into `before_compiling`.
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
"""Functions that are called once, before the first loop is compiled that is not in the cache."""


class _KeptCode(FunctionCache):
    """The cached code of one loop, loaded without the knowledge that only a compilation needs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        made_of = tuple(_made_of(cast(FunctionType, function), set()))
        files: Any = IndexDataCacheFile
        self._cache_file = files(self._cache_path, self._impl.filename_base, made_of)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # The runtime functions that compiled code calls.
        rtsys.initialize(target_context)
        try:
            found = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:
            # The file is incomplete, or refers to modules that are gone.
            found = None
            with suppress(Exception):
                self.flush()  # type: ignore[no-untyped-call]
        if found is None:
            while before_compiling:
                before_compiling.pop()()
            # Numba itself does this before it loads code.
            target_context.refresh()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        # Code that cannot be saved is compiled again by the next process.
        with suppress(Exception):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _made_of(function: FunctionType, seen: set[object]) -> Iterator[object]:
    """The state of each source and each constant on which the code of a function depends."""
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
    """The function as a loop that is compiled at its first call, and then cached on disk.

    Without a place for the cache (in a read-only container without a home, or in an executor of a
    cluster) every process compiles it.
    """
    loop: Any = njit(nogil=True, **options)(function)
    with suppress(RuntimeError):
        loop._cache = _KeptCode(function)
    return cast(Callable[..., Any], loop)


def uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled loop that makes no arrays, without reference counting.

    Otherwise references to each array that one loop passes to another would be counted, which costs
    many times more than a step of the loop.
    """
    return compiled(function, _nrt=False)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of compiled loops, which is cached with each loop that calls it."""
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    return cast(Callable[..., Any], njit(nogil=True, **options)(function))
