"""Snapshots: a run as bytes, from which it goes on in this process or another.

A snapshot is msgpack, never pickled code: [format, version, digest, body], where the digest is the
SHA-256 of the body; one that a key signs has its HMAC there, and says so last. The body says of
which library it is (a fingerprint of its text) and of which engine. Then comes the order: the
latest time, what still waits to be put in order, what came too late; and the counts. Last is what
the engine needs:

- `state`, for the step engine: its rules and keys as `ensue.engine.core.saved_rules` says;
- `batch`, for the batch engine: its own bytes, as `ensue.engine.batch.snapshots` says;
- `history`, for runs that go by the definitions (the reference engine, and runs that explain): all
  that was read so far, each with a word: `library` and the text that begins to run, `time` and the
  time that was reached, `event` and its JSON.

Bytes that are no snapshot, are damaged, or are of another version are a `SnapshotError`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from ensue.engine.core.saved_rules import SavedEvent, SavedStream
from ensue.engine.timing.agreeing import Dissent
from ensue.errors import EnsueError, EventError, LibraryError, SnapshotError, UsageError
from ensue.events.times import EARLIEST, LATEST
from ensue.lang.checked import CheckedLibrary
from ensue.lang.durations import LONGEST_DURATION
from ensue.lang.printer import print_library

FORMAT = "ensue-snapshot"
VERSION = 1
"""Raised with every change of what is written. A snapshot of any other version is refused."""

UNSIGNED, SIGNED = "sha256", "hmac-sha256"
SHORTEST_KEY = 16
"""The fewest bytes of a key: shorter keys can be found by trying, with a snapshot at hand."""

SavedHistory = list[tuple[str, str | int]]


class SavedOrder(msgspec.Struct, frozen=True):
    """The order of a run: its latest time, events that wait, events that came late."""

    lateness: int
    latest: int | None
    waiting: list[SavedEvent]
    late: list[SavedEvent]
    max_jump: int | None
    """In microseconds; None where jumps have no bound."""
    dissent: Dissent


class SavedCounts(msgspec.Struct, frozen=True):
    """The counts of a run (`ensue.engine.counts`)."""

    events: int
    outputs: int
    late: int
    without_key: dict[str, int]
    begun_anew: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A run as plain data; one of `state`, `batch` and `history` is there, by its engine."""

    library: str
    engine: str
    explains: bool
    order: SavedOrder
    counts: SavedCounts
    state: SavedStream | None = None
    batch: bytes | None = None
    history: SavedHistory | None = None


class _Envelope(msgspec.Struct, frozen=True, array_like=True):
    format: str
    version: int
    digest: bytes
    body: bytes
    seal: str = UNSIGNED


def fingerprint(library: CheckedLibrary) -> str:
    """A text that is equal for libraries of one meaning, whatever their layout and comments."""
    return hashlib.sha256(print_library(library.tree).encode()).hexdigest()


def write_snapshot(snapshot: Snapshot, key: bytes | None = None) -> bytes:
    try:
        body = msgspec.msgpack.encode(snapshot)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SnapshotError(
            f"an event that is still needed holds something that cannot be saved: {error}"
        ) from None
    sealed = [] if key is None else [SIGNED]
    return msgspec.msgpack.encode([FORMAT, VERSION, _digest(body, key), body, *sealed])


def _digest(body: bytes, key: bytes | None) -> bytes:
    if key is None:
        return hashlib.sha256(body).digest()
    if len(key) < SHORTEST_KEY:
        raise UsageError(
            f"a key that signs snapshots has {SHORTEST_KEY} bytes or more; given are {len(key)}"
        )
    return hmac.digest(key, f"{FORMAT} {VERSION} {SIGNED} ".encode() + body, "sha256")


def read_snapshot(data: bytes, library: CheckedLibrary, key: bytes | None = None) -> Snapshot:
    """The snapshot that bytes hold, if it is one of this library, and signed with this key."""
    try:
        envelope = msgspec.msgpack.decode(data, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise SnapshotError(f"these bytes are no snapshot: {error}") from None
    if envelope.format != FORMAT:
        raise SnapshotError("these bytes are no snapshot: they are of another format")
    if envelope.version != VERSION:
        raise SnapshotError(
            f"the snapshot has version {envelope.version}, and this version of ensue reads version"
            f" {VERSION}: use the version of ensue that wrote it, or start the run anew"
        )
    if envelope.seal not in (UNSIGNED, SIGNED):
        raise SnapshotError("the snapshot is damaged: it has a seal that is not known")
    if envelope.seal == SIGNED and key is None:
        raise SnapshotError(
            "the snapshot is signed: resume it with the `key` that it was taken with"
        )
    if envelope.seal != SIGNED and key is not None:
        raise SnapshotError(
            "the snapshot is not signed, and a `key` was given: it may be of anybody; resume it"
            " without a key if you trust where it comes from"
        )
    if not hmac.compare_digest(_digest(envelope.body, key), envelope.digest):
        raise SnapshotError(
            "the snapshot is damaged: its bytes are not those that were written"
            if key is None
            else "the snapshot is not signed with this `key`, or its bytes were changed"
        )
    try:
        snapshot = msgspec.msgpack.decode(envelope.body, type=Snapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SnapshotError(f"the snapshot is damaged: {error}") from None
    _check_times(snapshot.order)
    if snapshot.library != fingerprint(library):
        raise SnapshotError(
            "the snapshot was taken with another library (or another version of it); "
            "resume it with the library it was taken with"
        )
    return snapshot


@contextmanager
def damaged_if_impossible() -> Iterator[None]:
    """Turns any failure of a restored state into a `SnapshotError` about its bytes.

    Bytes are checked as they are read. But a snapshot that was changed, and whose digest was made
    to fit, may have states that no run ever had, and not every consequence is foreseen.
    """
    try:
        yield
    except EnsueError as error:
        if isinstance(error, EventError | LibraryError):
            raise impossible(error) from None
        raise
    except Exception as error:
        raise impossible(error) from error


def impossible(error: Exception) -> SnapshotError:
    """The error for a state in which a run cannot have been."""
    reason = str(error) or type(error).__name__
    return SnapshotError(f"the snapshot is damaged, or was changed: {reason}")


def _check_times(order: SavedOrder) -> None:
    """Raises `SnapshotError` for times that no event has."""
    times = [each.time for each in (*order.waiting, *order.late)]
    times += [] if order.latest is None else [order.latest]
    if not all(EARLIEST <= time <= LATEST for time in times):
        raise SnapshotError("the snapshot is damaged: it has times that no event has")
    if not 0 <= order.lateness <= LONGEST_DURATION:
        raise SnapshotError("the snapshot is damaged: its lateness is none")
    if order.max_jump is not None and order.max_jump < 0:
        raise SnapshotError("the snapshot is damaged: its largest jump is none")
    if order.latest is None and order.waiting:
        raise SnapshotError("the snapshot is damaged: events wait, and none has come")
