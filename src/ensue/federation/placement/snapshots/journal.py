"""The files in which a site outlives its process: a snapshot, and all that came in since.

An input is written before the service that it came from may forget it. A site that comes back reads
the snapshot, takes the inputs after it once more, and so puts out the same again, with the same
numbers; what the gateway had passed on by then is noted too, and not repeated. With every snapshot
a new log begins. The log before it is kept, to tell what comes again from what is new.

Snapshot `n` and the log of what came after it have the names `BASE.n.snapshot` and `BASE.n.log`. A
log is flushed and not synchronised: it survives the end of the process, not of the machine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from ensue.errors import SnapshotError
from ensue.events.event import Event
from ensue.federation.limits import limits
from ensue.federation.placement.snapshots.saved import Attached, plain, read, write

_LENGTH = struct.Struct(">I")


class JournalInput(msgspec.Struct, array_like=True, frozen=True):
    """An event or a parcel, or that time has passed, each at a `moment`; or that everything up to
    the output of a number has been passed on; or that the site is back; or that it goes on with
    what it has not done yet."""

    kind: Literal["event", "tick", "passed", "back", "on"]
    moment: int
    event: Event | None = None


class Header(msgspec.Struct, array_like=True, frozen=True):
    """The placement that a log is of, by its digest, and the instance of the site."""

    placement: str
    instance: str


class SiteJournal:
    def __init__(self, base: Path) -> None:
        self._base = base
        self._encoder = msgspec.msgpack.Encoder(enc_hook=plain)
        self._number = max((number for number, _ in self._found("snapshot")), default=0)
        self._log: IO[bytes] | None = None
        self._length = 0

    def load(self) -> Attached | None:
        """The latest snapshot, if there is one. Raises `SnapshotError` if it cannot be read."""
        if not self._number:
            return None
        try:
            return read(self._path(self._number, "snapshot").read_bytes())
        except OSError as error:
            raise SnapshotError(f"the snapshot of the site cannot be read: {error}") from None

    def inputs(self, header: Header) -> list[JournalInput]:
        """What came in since the snapshot. Raises `SnapshotError` if that was another site."""
        logged = self._read(self._number)
        if logged and logged[0] != header:
            raise SnapshotError("the library or the sites have changed since")
        return [each for each in logged if isinstance(each, JournalInput)]

    @property
    def instance(self) -> str | None:
        """The instance of the site that the log is of."""
        logged = self._read(self._number)
        return logged[0].instance if logged and isinstance(logged[0], Header) else None

    def recalled(self) -> list[Event]:
        """The events and parcels that came in last."""
        logged = (*self._read(self._number - 1), *self._read(self._number))
        inputs = (each for each in logged if isinstance(each, JournalInput))
        return [each.event for each in inputs if each.event is not None]

    def begin(self, header: Header) -> None:
        """Go on with the log of the snapshot."""
        path = self._path(self._number, "log")
        path.parent.mkdir(parents=True, exist_ok=True)
        records, whole = self._records(self._number)
        self._length = len(records)
        self._log = path.open("ab")
        # A process may have ended in the middle of a record.
        self._log.truncate(whole)
        if not self._length:
            self._append(header)

    def begin_afresh(self, header: Header) -> None:
        """Leave behind what was kept."""
        for kind in ("snapshot", "log"):
            for _, path in self._found(kind):
                path.unlink(missing_ok=True)
        self._number = 0
        self.begin(header)

    def add(self, given: JournalInput) -> None:
        """Note an input; it is kept from the next `flush` on."""
        self._append(given)

    def flush(self) -> None:
        assert self._log is not None
        self._log.flush()

    @property
    def is_long(self) -> bool:
        """Whether the journal is long enough for a snapshot to replace it."""
        return self._length >= limits().inputs_before_a_snapshot

    def save(self, attached: Attached) -> None:
        """Write a snapshot, and begin a new log behind it."""
        path = self._path(self._number + 1, "snapshot")
        fresh = path.with_name(f"{path.name}.new")
        fresh.write_bytes(write(attached))
        fresh.replace(path)
        self.close()
        self._path(self._number, "snapshot").unlink(missing_ok=True)
        self._path(self._number - 1, "log").unlink(missing_ok=True)
        self._number += 1
        self.begin(Header(attached.placement, attached.site.instance))

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _append(self, record: Any) -> None:
        assert self._log is not None
        data = self._encoder.encode(record)
        self._log.write(_LENGTH.pack(len(data)) + data)
        self._length += 1

    def _path(self, number: int, kind: str) -> Path:
        return self._base.with_name(f"{self._base.name}.{number}.{kind}")

    def _found(self, kind: str) -> Iterator[tuple[int, Path]]:
        for path in self._base.parent.glob(f"{self._base.name}.*.{kind}"):
            with suppress(ValueError):
                yield int(path.name.removeprefix(f"{self._base.name}.").partition(".")[0]), path

    def _read(self, number: int) -> list[Header | JournalInput]:
        return self._records(number)[0]

    def _records(self, number: int) -> tuple[list[Header | JournalInput], int]:
        """The records of a log that were written to their end, and how many bytes they take."""
        try:
            data = self._path(number, "log").read_bytes()
        except OSError:
            return [], 0
        found: list[Header | JournalInput] = []
        whole = 0
        with suppress(struct.error, msgspec.MsgspecError):
            while whole < len(data):
                begin = whole + _LENGTH.size
                end = begin + _LENGTH.unpack_from(data, whole)[0]
                if end > len(data):
                    break
                of: Any = JournalInput if found else Header
                found.append(msgspec.msgpack.decode(data[begin:end], type=of))
                whole = end
        return found, whole
