"""What a change expects of the present state of a resource, so that no work is overwritten.

In come the tags that a caller has seen (`If-Match`, `If-None-Match` of RFC 9110); whether they hold
is asked in the step of the line that makes the change, so nothing can come between. A tag names a
version of the resource and a digest of it: a name that was deleted and given again has other tags.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from ensue.errors import UsageError

DIGEST_BYTES: Final = 8


class ChangedError(UsageError):
    """A change of something that is no longer as its author has seen it."""


class Precondition(NamedTuple):
    """Tags, one of which must be that of the present state, or say that there is none yet."""

    tags: frozenset[str] | None = None
    """None asks nothing; `ANY` asks only that something is there."""
    is_new: bool = False

    def holds(self, tag: str | None) -> bool:
        """Whether a change may be made to something of this tag; None if there is nothing."""
        if self.is_new:
            return tag is None
        return self.tags is None or (tag is not None and (self.tags == ANY or tag in self.tags))


ANY: Final = frozenset({"*"})
ALWAYS: Final = Precondition()


def digest(*parts: str | bytes, key: bytes = b"") -> str:
    """A short digest of texts, in which their borders count."""
    found = blake2b(digest_size=DIGEST_BYTES, key=key)
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        found.update(len(content).to_bytes(8, "big") + content)
    return found.hexdigest()
