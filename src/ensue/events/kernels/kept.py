"""A quick check whether loops have been compiled before on this machine.

Nothing is imported for it: numba caches compiled code in files, in a folder that the user has set,
beside the source or, if that is read-only, in the cache folder of the user. A loop whose source has
changed since is compiled again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_WALKS = _PACKAGE / "engine" / "core"
"""Where the loops are that take columns through cells."""


def has_compiled_loops() -> bool:
    """Whether the loops of most runs in columns have been compiled."""
    return any(any(folder.glob(own)) for folder, own, _ in _folders())


def kept_loops() -> int:
    """The number of all loops that have been compiled."""
    return sum(1 for folder, _, every in _folders() for _ in folder.glob(every))


def folder_of_loops() -> Path | None:
    """The folder in which compiled loops are; None if there are none."""
    return next((folder for folder, own, _ in _folders() if any(folder.glob(own))), None)


def _folders() -> Iterator[tuple[Path, str, str]]:
    """The folders of compiled code, with the patterns of the files of these loops, and of all."""
    below = f"{_WALKS.name}_*/*.nbi"
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        yield Path(named), below, "*/*.nbi"
    # What is beside the source is used wherever it may be kept now.
    own = f"{_WALKS.relative_to(_PACKAGE)}/__pycache__/*.nbi"
    yield _PACKAGE, own, "**/__pycache__/*.nbi"
    if named:
        return
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield Path(home) / "numba", below, "*/*.nbi"
