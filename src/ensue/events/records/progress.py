"""Progress of reading: the callback of a user, and the share of one file in all files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

OnProgress = Callable[[int, int | None], None]
"""Called now and then with the amount that has been read and the total, None if that is not known,
and once more at the end. Amounts are bytes on the disk, or rows of one open table."""


@dataclass(frozen=True)
class FileProgress:
    """The progress of one file as progress over all files; `before` are the bytes before it."""

    progress: OnProgress
    before: int
    total: int | None

    def __call__(self, done: int) -> None:
        self.progress(self.before + done, self.total)

    def by_rows(self, size: int | None) -> OnProgress:
        """A callback for a reader that counts rows, in a file of `size` bytes."""
        return lambda done, total: self(0 if not total else (size or 0) * done // total)
