"""What a station holds from its beginning to its end: the lock of its folder, and its ontology."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ensue.errors import UsageError
from ensue.server.settings import Settings


def locked(folder: Path) -> int:
    """Lock the folder: two servers on one journal would both number its entries."""
    import fcntl

    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise UsageError(
            f"another server works on `{folder}`: stop it, or give another `data` folder"
        ) from None
    return lock


def ontology_of(settings: Settings) -> Any:
    if not settings.ontology.files:
        return None
    from ensue.knowledge import Ontology

    return Ontology.load(*(settings.folder / each for each in settings.ontology.files))
