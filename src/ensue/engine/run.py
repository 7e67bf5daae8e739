"""A run of a library over one stream: order, clock, late events, snapshots; around any engine.

In come events as they arrive, each checked against its type; out come outputs in their order. A run
puts events in order within its lateness and keeps those that come later than that in `late`. What
an event means is the engine's.

A snapshot is data: a versioned header and what the engine needs to go on. It names the library by a
fingerprint of its text, and only the same library resumes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import msgspec

from ensue.engine.counts import Counts
from ensue.engine.ordering import Ordering
from ensue.engine.reference import reference_engine
from ensue.engine.step import step_engine
from ensue.errors import EventError, SnapshotError, UsageError
from ensue.events import cloudevents
from ensue.events.conformance import conform
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary
from ensue.lang.printer import print_library

EventLike = Event | Mapping[str, Any] | str | bytes


class Engine(Protocol):
    """What every engine can do: read events that are in order, and let time pass."""

    def read(self, event: Event) -> list[Event]: ...

    def advance(self, time: int) -> list[Event]: ...


ENGINES = {"reference": reference_engine, "step": step_engine}


class Snapshot(msgspec.Struct, frozen=True):
    """`history` is what the reference engine goes on from: all that it has read so far."""

    format: str
    version: int
    library: str
    engine: str
    lateness: int
    history: list[bytes | int]


SNAPSHOT_FORMAT = "ensue-snapshot"
SNAPSHOT_VERSION = 1


class Run:
    """One library over one stream. Made by `Library.start` and `Library.resume`."""

    def __init__(self, library: CheckedLibrary, engine: str = "auto", lateness: int = 0) -> None:
        self.counts = Counts()
        self.late: list[Event] = []
        self._library = library
        self._engine_name = choose_engine(engine)
        self._engine: Engine = ENGINES[self._engine_name](library, self.counts)
        self._ordering = Ordering(lateness)
        self._history: list[bytes | int] = []

    def push(self, event: EventLike) -> list[Event]:
        """Read one event and return what follows from it.

        Raises `EventError` if the event is malformed or does not fit its type; the run goes on as
        if it had never come. An event that comes too late is kept in `late`.
        """
        ready = conform(as_event(event), self._library.types)
        self._history.append(cloudevents.encode(ready))
        return self._accept(ready)

    def _accept(self, event: Event) -> list[Event]:
        self.counts.events += 1
        if self._ordering.is_late(event.time):
            self.counts.late += 1
            self.late.append(event)
            return []
        self._ordering.add(event)
        return self._read(self._ordering.ready())

    def advance(self, time: int) -> list[Event]:
        """Tell the run that its stream has come to a time, in microseconds since 1970."""
        self._history.append(time)
        self._ordering.observe(time)
        made = self._read(self._ordering.ready())
        settled = self._ordering.settled
        return made + (self._count(self._engine.advance(settled)) if settled is not None else [])

    def finish(self, until: int | None = None) -> list[Event]:
        """End the stream: read what still waits to be put in order, then go on to `until`."""
        made = self._read(self._ordering.rest())
        return made + (self._count(self._engine.advance(until)) if until is not None else [])

    def snapshot(self) -> bytes:
        """All that is needed to go on from here, in this process or another."""
        return msgspec.msgpack.encode(
            Snapshot(
                SNAPSHOT_FORMAT,
                SNAPSHOT_VERSION,
                fingerprint(self._library),
                self._engine_name,
                self._ordering.lateness,
                self._history,
            )
        )

    @classmethod
    def resume(cls, library: CheckedLibrary, snapshot: bytes) -> Run:
        state = read_snapshot(snapshot)
        if state.library != fingerprint(library):
            raise SnapshotError(
                "the snapshot was taken with another library (or another version of it); "
                "resume it with the library it was taken with"
            )
        run = cls(library, state.engine, state.lateness)
        for entry in state.history:
            if isinstance(entry, int):
                run.advance(entry)
            else:
                run.push(entry)
        return run

    def _read(self, events: Iterable[Event]) -> list[Event]:
        return [output for event in events for output in self._count(self._engine.read(event))]

    def _count(self, outputs: list[Event]) -> list[Event]:
        self.counts.outputs += len(outputs)
        return outputs


def run_bounded(
    run: Run, events: Iterable[Event], *, sort: bool, until: int | None = None
) -> Iterator[Event]:
    """Everything that follows from a bounded input, read in the order of its times if `sort`."""
    for event in sorted(events, key=lambda each: each.time) if sort else events:
        yield from run.push(event)
    yield from run.finish(until)


def choose_engine(name: str) -> str:
    if name == "auto":
        return "step"
    if name not in ENGINES:
        known = ", ".join(f"`{each}`" for each in ["auto", *ENGINES])
        raise UsageError(f"there is no engine `{name}` here; choose one of {known}")
    return name


def as_event(event: EventLike) -> Event:
    if isinstance(event, Event):
        return event
    if isinstance(event, Mapping):
        try:
            text = msgspec.json.encode(event)
        except (TypeError, ValueError) as error:
            raise EventError([f"the event cannot be said in JSON: {error}"]) from None
        return cloudevents.decode(text)
    return cloudevents.decode(event)


def fingerprint(library: CheckedLibrary) -> str:
    """The same for two libraries that read the same, whatever their layout and comments."""
    return hashlib.sha256(print_library(library.tree).encode()).hexdigest()


def read_snapshot(snapshot: bytes) -> Snapshot:
    try:
        state = msgspec.msgpack.decode(snapshot, type=Snapshot)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"these bytes are no snapshot: {error}") from None
    if state.format != SNAPSHOT_FORMAT:
        raise SnapshotError("these bytes are no snapshot")
    if state.version != SNAPSHOT_VERSION:
        raise SnapshotError(
            f"the snapshot has version {state.version}, "
            f"and this version of ensue reads version {SNAPSHOT_VERSION}"
        )
    return state
