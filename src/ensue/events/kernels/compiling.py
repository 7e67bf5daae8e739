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
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.core.runtime.nrt import rtsys

_places: list[Any] = [*CompileResultCacheImpl._locator_classes]
# Its name begins with an underscore in some versions of numba.
_InTree: Any = next(each for each in _places if each.__name__.endswith("InTreeCacheLocator"))

before_compiling: list[Callable[[], None]] = []
"""Functions that are called once, before the first loop is compiled that is not in the cache."""


class _Beside(_InTree):  # type: ignore[misc]
    """Code beside its source, where nothing needs to be written."""

    def ensure_cache_path(self) -> None:
        pass


class _KeptForm(CompileResultCacheImpl):
    """Where code is kept: in the places of numba, or else beside its source, to read alone."""

    _locator_classes: list[Any] = [*_places, _Beside]  # noqa: RUF012


class _KeptCode(FunctionCache):
    """The cached code of one loop, loaded without the knowledge that only a compilation needs.

    Code beside the source is read also by users who cannot write there: an installation is warmed
    once for all of them.
    """

    _impl_class = _KeptForm

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        made_of = tuple(_made_of(cast(FunctionType, function), set()))
        files: Any = IndexDataCacheFile
        beside = os.path.join(os.path.dirname(function.__code__.co_filename), "__pycache__")
        self._files = [
            files(path, self._impl.filename_base, made_of)
            for path in dict.fromkeys((self._cache_path, beside))
        ]
        self._cache_file = self._files[0]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # The runtime functions that compiled code calls.
        rtsys.initialize(target_context)
        found = next(
            filter(None, (self._loaded(each, sig, target_context) for each in self._files)), None
        )
        self._cache_file = self._files[0]
        if found is None:
            while before_compiling:
                before_compiling.pop()()
            # Numba itself does this before it loads code.
            target_context.refresh()
        return found

    def _loaded(self, files: Any, sig: Any, target_context: Any) -> Any:
        self._cache_file = files
        try:
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:
            # The file is incomplete, or refers to modules that are gone.
            with suppress(Exception):
                self.flush()  # type: ignore[no-untyped-call]
            return None

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
