"""A quick check whether loops have been compiled before on this machine.

Nothing is imported for it: numba caches compiled code in files, in a folder that the user has set,
beside the source or, if that is read-only, in the cache folder of the user. A loop whose source has
changed since is compiled again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).parent


def has_compiled_loops() -> bool:
    """Whether the loops that read files have been compiled, without which no run in columns is."""
    return any(any(folder.glob(own)) for folder, own, _ in _folders())


def kept_loops() -> int:
    """The number of all loops that have been compiled."""
    return sum(1 for folder, _, every in _folders() for _ in folder.glob(every))


def folder_of_loops() -> Path | None:
    """The folder in which compiled loops are; None if there are none."""
    return next((folder for folder, own, _ in _folders() if any(folder.glob(own))), None)


def _folders() -> Iterator[tuple[Path, str, str]]:
    """The folders of compiled code, with the patterns of the files of these loops, and of all."""
    below = f"{_HERE.name}_*/*.nbi"
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        yield Path(named), below, "*/*.nbi"
    # What is beside the source is used wherever it may be kept now.
    package = _HERE.parents[1]
    yield package, f"{_HERE.relative_to(package)}/__pycache__/*.nbi", "**/__pycache__/*.nbi"
    if named:
        return
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield Path(home) / "numba", below, "*/*.nbi"
