"""The folder of a checkpoint: whether it can be written, and a lock against a second process.

In comes the path of a checkpoint; a `UsageError` comes out if it cannot be a folder, or if another
process of this machine runs a stream from it. Spark detects two processes only when both plan the
same micro-batch; a micro-batch that was planned before would be run by both. The lock belongs to
the operating system, which releases it when the process ends. Two streams of one process, and
checkpoints on other machines, are left to Spark's own detection.
"""

from __future__ import annotations

import os
from pathlib import Path

from ensue.errors import UsageError

LOCK = ".ensue_lock"
_held: dict[Path, int] = {}
"""The locks of this process by file, held until it ends."""


def lock(checkpoint: str) -> None:
    """Locks the checkpoint for this process. Raises `UsageError` if another process holds it."""
    folder = local_folder(checkpoint)
    if folder is None:
        return
    try:
        import fcntl
    except ModuleNotFoundError:
        # Windows has no such locks.
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOCK).resolve()
    if file in _held:
        return
    opened = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = os.read(opened, 20).decode(errors="replace").strip()
        os.close(opened)
        raise UsageError(
            f"the checkpoint `{checkpoint}` is in use by another stream (process {other}): stop"
            " that one first, or give this one a checkpoint and a sink of its own"
        ) from None
    except OSError:
        # The file system has no locks.
        os.close(opened)
        return
    os.ftruncate(opened, 0)
    os.write(opened, str(os.getpid()).encode())
    _held[file] = opened


def check_location(checkpoint: str) -> None:
    """Raises `UsageError` if a folder of this machine cannot be written."""
    folder = local_folder(checkpoint)
    existing = folder
    while existing is not None and not existing.exists():
        existing = existing.parent
    if existing is None or (existing.is_dir() and os.access(existing, os.W_OK)):
        return
    what = "cannot be written to by you" if existing.is_dir() else "is a file"
    raise UsageError(
        f"there can be no `checkpoint` at `{checkpoint}`, since `{existing}` {what}: give a folder"
        " that you may write to, on storage that outlives the stream"
    )


def local_folder(checkpoint: str) -> Path | None:
    """The folder of a checkpoint or a sink, if it lies on this machine."""
    if checkpoint.startswith("file:"):
        return Path("/" + checkpoint.removeprefix("file:").lstrip("/"))
    return None if ":/" in checkpoint else Path(checkpoint)
