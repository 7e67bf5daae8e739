"""A quick check whether loops have been compiled before on this machine.

Nothing is imported for it: numba caches compiled code in files, in a folder that the user has set,
beside the source or, if that is read-only, in the cache folder of the user. A loop whose source has
changed since is compiled again.
"""

from __future__ import annotations

import os
from pathlib import Path

_HERE = Path(__file__).parent


def has_compiled_loops() -> bool:
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return _holds_some(Path(named))
    if any((_HERE / "__pycache__").glob("*.nbi")):
        return True
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return _holds_some(Path(home) / "numba")


def _holds_some(folder: Path) -> bool:
    return any(folder.glob(f"{_HERE.name}_*/*.nbi"))
