"""Which events a service is known to have, by identity, for as long as one may come again.

What a gateway has published at a service, read from it or been told of by neighbours is at the
service, and is not sent there again. An identity may be forgotten once nothing that was anywhere
when it was noted can come again, which the owner knows (`may_forget`). So identities stand in two
generations: when the younger one has grown to its size, and all events that were under way when it
began have been acknowledged, it becomes the older one, and what was the older one is forgotten.

With a file, identities outlive a gateway that is killed. `keep` writes what is new; it is called
before any acknowledgement, since what has not been acknowledged is read again anyway.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_WORD = 8
_MOST_TIMES = 10
"""How many times its size a generation may grow to while it must not be forgotten."""


class Seen:
    def __init__(self, size: int, file: Path | None = None) -> None:
        self._size = size
        self._young: dict[int, None] = {}
        self._old: dict[int, None] = {}
        self._files = None if file is None else (file, file.with_name(f"{file.name}.old"))
        self._new: list[int] = []
        if self._files is not None:
            self._young, self._old = (dict.fromkeys(_read(each)) for each in self._files)

    def __contains__(self, identity: int) -> bool:
        return identity in self._young or identity in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def add(self, identity: int) -> None:
        if identity not in self:
            self._young[identity] = None
            if self._files is not None:
                self._new.append(identity)

    def update(self, identities: Iterable[int]) -> None:
        for each in identities:
            self.add(each)

    def latest(self, most: int) -> list[int]:
        """The identities that were added last, in their order."""
        young = list(self._young)[-most:]
        older = list(self._old)[len(young) - most :] if len(young) < most else []
        return older + young

    @property
    def is_due(self) -> bool:
        """Whether the younger generation has its size."""
        return len(self._young) >= self._size

    def forget(self, may_forget: bool) -> bool:
        """Begin a generation, if what is forgotten cannot come again; whether it was begun."""
        if not self.is_due or not (may_forget or len(self._young) >= _MOST_TIMES * self._size):
            return False
        self.keep()
        self._old, self._young = self._young, {}
        if self._files is not None:
            with suppress(OSError):
                self._files[0].replace(self._files[1])
        return True

    def keep(self) -> None:
        """Write what is new to the file: it is there again when the process has been killed."""
        if not self._new or self._files is None:
            return
        new, self._new = self._new, []
        # Without room on the disk the gateway goes on with what it has in memory.
        with suppress(OSError), self._files[0].open("ab") as file:
            file.write(array("Q", new).tobytes())


def _read(file: Path) -> array[int]:
    """The identities in a file; a last one that was not written whole is left out."""
    found = array("Q")
    with suppress(OSError):
        content = file.read_bytes()
        whole = len(content) // _WORD * _WORD
        found.frombytes(content[:whole])
        if whole < len(content):
            os.truncate(file, whole)
    return found
