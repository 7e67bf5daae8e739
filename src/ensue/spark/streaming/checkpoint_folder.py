"""A checkpoint belongs to one process at a time.

In comes a checkpoint; out goes nothing, or a `UsageError` if another process of this machine runs a
stream from it. Spark notices two of them when both plan the same micro-batch; one that was planned
before, both would run, and write over each other. The lock is the system's own, so that it goes
with its process, however that ends. Checkpoints elsewhere are left to what Spark notices, and two
streams of one process too.
"""

from __future__ import annotations

import os
from pathlib import Path

from ensue.errors import UsageError
from ensue.spark.streaming.checkpoint_rules import local_folder

LOCK = ".ensue_lock"
_held: dict[Path, int] = {}
"""The locks of this process by their files; they are kept until it ends."""


def hold(checkpoint: str) -> None:
    """From now on, this process alone. Raises `UsageError` if another one was first."""
    folder = local_folder(checkpoint)
    if folder is None:
        return
    try:
        import fcntl
    except ModuleNotFoundError:
        # Only systems like Unix have such locks.
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOCK).resolve()
    if file in _held:
        return
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = os.read(lock, 20).decode(errors="replace").strip()
        os.close(lock)
        raise UsageError(
            f"the checkpoint `{checkpoint}` is in use by another stream (process {other}): stop"
            " that one first, or give this one a checkpoint and a sink of its own"
        ) from None
    except OSError:
        # A file system without locks is used as if there were none.
        os.close(lock)
        return
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    _held[file] = lock
