"""What a bucket keeps between micro-batches, as bytes for Spark's state store.

A versioned msgpack record: the latest time that the stream had reached, the events that wait to be
put in order, and snapshots of the engines, which hold the keys that are in the middle of something
and no others. It also says of which rules it is and into how many buckets the keys are spread, so
that a checkpoint is never read as something that it is not.
"""

from __future__ import annotations

import msgspec

from ensue.errors import SnapshotError

VERSION = 1


class BucketState(msgspec.Struct, frozen=True):
    """`waiting` is an Arrow stream of that `form`; `engines` has texts of rules, and snapshots."""

    version: int
    buckets: int
    form: str
    latest: int
    waiting: bytes | None
    engines: dict[str, tuple[str, bytes]]


def write_state(state: BucketState) -> bytes:
    return msgspec.msgpack.encode(state)


def read_state(data: bytes, buckets: int) -> BucketState:
    """Raises `SnapshotError` for bytes that this stream cannot go on from."""
    try:
        state = msgspec.msgpack.decode(data, type=BucketState)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the checkpoint holds no state of a stream of ours: {error}") from None
    if state.version != VERSION:
        raise SnapshotError(
            f"the checkpoint holds version {state.version} of the state of a stream, and this"
            f" version of ensue reads version {VERSION}: start from a new checkpoint, or use the"
            " version that wrote it"
        )
    if state.buckets != buckets:
        raise SnapshotError(
            f"the checkpoint was written with `buckets={state.buckets}`, and the stream is started"
            f" with {buckets}: a key would be looked for where it is not; start it with"
            f" `buckets={state.buckets}`, or from a new checkpoint"
        )
    return state
