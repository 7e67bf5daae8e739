"""Signs what a checkpoint holds of ours with a key, and takes nothing that is not signed with it.

In come bytes and the place that they belong to (a bucket, the file of rules); out go the same bytes
behind an HMAC-SHA256 over both, so that a state is neither changed nor put in another's place.
Without a key bytes stay as they are. Offsets and commits are Spark's own, and are not signed.
"""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Final

from ensue.configuration.secrets import REFERENCE, secret, secret_in
from ensue.errors import SnapshotError, UsageError

SHORTEST_KEY: Final = 16
_MARK: Final = b"ensue signed state\n"
_SIZE: Final = 32
_COMMENT: Final = "// signed by hmac-sha256: "


def signed(body: bytes, key: bytes | None, place: str) -> bytes:
    return body if key is None else _MARK + _digest(body, key, place) + body


def unsigned(data: bytes, key: bytes | None, place: str) -> bytes:
    """The bytes without their signature. Raises `SnapshotError` if it is missing or wrong."""
    is_signed = data.startswith(_MARK)
    if key is None:
        if is_signed:
            raise SnapshotError(
                f"the checkpoint is signed ({place}): start the stream with the `key` that it was"
                " begun with"
            )
        return data
    if not is_signed:
        raise SnapshotError(
            f"the checkpoint is not signed ({place}), and a `key` is given: what it holds may be of"
            " anybody; start from a new checkpoint, or without a key if you trust where it comes"
            " from"
        )
    begin = len(_MARK) + _SIZE
    body = data[begin:]
    if not hmac.compare_digest(data[len(_MARK) : begin], _digest(body, key, place)):
        raise SnapshotError(
            f"the checkpoint is not signed with this `key`, or was changed ({place}): put back a"
            " copy of it, or start from a new one"
        )
    return body


def signed_text(text: str, key: bytes | None, place: str) -> str:
    """A text with its signature in a comment behind it."""
    return text if key is None else f"{text}\n{_COMMENT}{_digest(text.encode(), key, place).hex()}"


def unsigned_text(text: str | None, key: bytes | None, place: str) -> str | None:
    """The text without its signature. Raises `SnapshotError` if it is missing or wrong."""
    if text is None:
        return None
    body, found, digest = text.rpartition(f"\n{_COMMENT}")
    if key is None:
        return body if found else text
    if not found or not hmac.compare_digest(digest, _digest(body.encode(), key, place).hex()):
        raise SnapshotError(
            f"`{place}` in the checkpoint is not signed with this `key`, or was changed: put back a"
            " copy of the checkpoint, or start from a new one"
        )
    return body


def _digest(body: bytes, key: bytes, place: str) -> bytes:
    return hmac.digest(key, _MARK + place.encode() + b"\n" + body, "sha256")


def checked_key(key: object) -> bytes | None:
    """Raises `UsageError` for a key that is none, or too short."""
    if key is None or (isinstance(key, bytes) and len(key) >= SHORTEST_KEY):
        return key
    given = f"{len(key)} bytes" if isinstance(key, bytes) else f"a `{type(key).__name__}`"
    raise UsageError(
        f"a `key` that signs a checkpoint is {SHORTEST_KEY} bytes or more; given is {given}"
    )


def key_by_reference(text: str | None) -> bytes | None:
    """The key that a file of a pipeline refers to. Raises `UsageError`; never shows a key."""
    if text is None:
        return None
    found = REFERENCE.fullmatch(text)
    if found is None:
        raise UsageError(
            "`key` in `[stream]` says where the key is, and not the key itself: give"
            " `${env:NAME}` or `${file:PATH}`"
        )
    way, name = found.groups()
    try:
        key = secret_in(Path(name)) if way == "file" else secret(found).encode()
    except UsageError as error:
        raise UsageError(f"`key` in `[stream]`: {error}") from None
    return checked_key(key)
