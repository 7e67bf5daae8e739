"""A run of a library over one stream: order, clock, late events, snapshots; around any engine.

In come events as they arrive, each checked against its type; out come outputs in their order. A run
puts events in order within its lateness and keeps those that come later than that in `late`. What
an event means is the engine's. Rules come and go while it runs; what of it is kept, and what bytes
a snapshot is, is told in `changing` and `snapshots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol, overload

import msgspec

from ensue.engine.changing import HasTree, checked_source, with_definitions, without
from ensue.engine.choosing import (
    ENGINES,
    Engine,
    KnowsTimers,
    ReadsMany,
    choose_engine,
    engine_with_history,
    make_engine,
)
from ensue.engine.core.saved.rules import restore_event, save_event
from ensue.engine.counts import Counts
from ensue.engine.explaining import Explainer, WhyNot, WhyOutput
from ensue.engine.ordering import Ordering
from ensue.engine.snapshots import (
    History,
    SavedCounts,
    SavedOrder,
    Snapshot,
    fingerprint,
    read_snapshot,
    write_snapshot,
)
from ensue.engine.step import StepStream
from ensue.engine.step.saving import restore_stream, save_stream
from ensue.errors import EventError, SnapshotError, UsageError
from ensue.events import cloudevents
from ensue.events.conformance import conform
from ensue.events.event import Event, instant_of
from ensue.lang.checked import CheckedLibrary
from ensue.lang.expressions.asking import AskingScope, TemporalStore
from ensue.lang.expressions.evaluation import SCOPE_OF
from ensue.lang.printer import print_library
from ensue.lang.source import Source

EventLike = Event | Mapping[str, Any] | str | bytes

Instant = int | datetime | str
"""Microseconds since 1970, an aware datetime, or RFC 3339 text."""


class Publications(TemporalStore, Protocol):
    """A history that a run asks, and keeps its events in."""

    def check(self, event: Event) -> None:
        """Raises `EventError` if an event cannot be kept."""

    def add(self, event: Event) -> None: ...


class Run:
    """One library over one stream. Made by `Library.start` and `Library.resume`.

    A run that explains goes by the definitions and remembers its events, whatever its engine: it
    puts out the same, is slower, and can be asked `why`.
    """

    def __init__(
        self,
        library: CheckedLibrary,
        engine: str = "auto",
        lateness: int = 0,
        explain: bool = False,
        publications: Publications | None = None,
    ) -> None:
        if publications is not None:
            engine = engine_with_history(engine, explain)
        self._publications = publications
        self.counts = Counts()
        self.late: list[Event] = []
        self._library = library
        self._engine_name = choose_engine(engine)
        self._explainer = Explainer(library, self.counts) if explain else None
        self._engine: Engine = self._explainer or make_engine(
            self._engine_name, library, self.counts
        )
        self._ordering = Ordering(lateness)
        self._history: History | None = None
        if not isinstance(self._engine, (StepStream, ReadsMany)):
            self._history = [("library", print_library(library.tree))]
        self._pushes = self._routines()

    def push(self, event: EventLike) -> list[Event]:
        """Read one event and return what follows from it.

        Raises `EventError` if the event is malformed or does not fit its type; the run goes on as
        if it had never come. An event that comes too late is kept in `late`.
        """
        if event.__class__ is Event:
            push = self._pushes.get(event.type)
            if push is not None:
                return push(event)
        return self._push(as_event(event))

    def _push(self, event: Event) -> list[Event]:
        """The general way in, for whatever an event may turn out to be."""
        ready = conform(event, self._library.types)
        if self._publications is not None:
            self._publications.check(ready)
        if self._history is not None:
            self._history.append(("event", cloudevents.encode(ready).decode()))
        return self._accept(ready)

    @property
    def reads_many(self) -> bool:
        """Whether the engine is better off with many events at once."""
        return isinstance(self._engine, ReadsMany)

    def push_all(self, events: Iterable[EventLike]) -> list[Event]:
        """Read many events, as `push` reads one, and return what follows from them.

        Raises `EventError` at the first that is refused. An engine that reads one event at a time
        has then read those before it; one that reads many has read none of them.
        """
        if not isinstance(self._engine, ReadsMany):
            return [output for event in events for output in self.push(event)]
        # All of them first: what is taken into the order and then not read would be lost.
        conformed = [conform(as_event(event), self._library.types) for event in events]
        ready: list[Event] = []
        for event in conformed:
            if self._is_in_time(event):
                ready += self._ordering.ready()
        return self._count(self._engine.read_all(ready))

    def _accept(self, event: Event) -> list[Event]:
        return self._read(self._ordering.ready()) if self._is_in_time(event) else []

    def _is_in_time(self, event: Event) -> bool:
        """Count an event, and put it among those that are read, or among the late ones."""
        self.counts.events += 1
        if self._ordering.is_late(event.time):
            self.counts.late += 1
            self.late.append(event)
            if self._publications is not None:
                self._publications.add(event)
            return False
        self._ordering.add(event)
        return True

    def advance(self, time: Instant) -> list[Event]:
        """Tell the run that its stream has come to a time, and return what follows from that."""
        time = time_microseconds(time)
        if self._history is not None:
            self._history.append(("time", time))
        self._ordering.observe(time)
        made = self._read(self._ordering.ready())
        settled = self._ordering.settled
        return made + (self._count(self._engine.advance(settled)) if settled is not None else [])

    def next_due(self) -> int | None:
        """The earliest time at which `advance` brings something about, if no event comes before.

        In microseconds since 1970; None if nothing waits. Then a timer fires, or an event that
        waits to be put in order is read: so the owner of a clock can sleep until then. With a
        lateness it is later by that, since what is earlier may still come.
        """
        if not isinstance(self._engine, KnowsTimers):
            raise UsageError(
                f"the engine `{self._engine_name}` does not say when its next timer is due:"
                ' start the run with `engine="step"`, or call `advance` from time to time'
            )
        due = [self._engine.next_due(), self._ordering.next_waiting]
        known = [each for each in due if each is not None]
        return min(known) + self._ordering.lateness if known else None

    def finish(self, until: Instant | None = None) -> list[Event]:
        """End the stream: read what still waits to be put in order, then go on to `until`."""
        end = None if until is None else time_microseconds(until)
        made = self._read(self._ordering.rest())
        return made + (self._count(self._engine.advance(end)) if end is not None else [])

    # --- rules that come and go -----------------------------------------------------------------

    @property
    def text(self) -> str:
        """The library that runs now, as text. A snapshot is resumed with a library of this text."""
        return print_library(self._library.tree)

    def add(self, definitions: str | HasTree) -> None:
        """Run more rules from now on: a text, or a library, of types and correlations.

        They start at the next event. A type that runs already may be said again, if it is the same.
        Raises `LibraryError`, and leaves what runs as it was, if a name is taken or anything in the
        whole is wrong.
        """
        self._change(with_definitions(self._library, definitions, replacing=False))

    def replace(self, definitions: str | HasTree) -> None:
        """Run these in place of those with the same names; what has a new name is added.

        A replaced rule takes the place of the old one and starts afresh; a rule that means the same
        as before keeps its state, and so do all others. Raises `LibraryError`, and leaves what
        runs as it was, if anything in the whole is wrong.
        """
        self._change(with_definitions(self._library, definitions, replacing=True))

    def remove(self, *names: str) -> None:
        """Stop these rules (or forget these types). What they were in the middle of is dropped.

        Raises `UsageError` for a name that does not run, and `LibraryError` if what is left
        needs it.
        """
        self._change(without(self._library, names))

    def change(self, library: HasTree) -> None:
        """Run another library from now on. A rule that means the same keeps its state."""
        self._change(library.checked)

    def _change(self, library: CheckedLibrary) -> None:
        self._engine.change(library)
        self._library = library
        self._pushes = self._routines()
        if self._history is not None:
            self._history.append(("library", print_library(library.tree)))

    def _routines(self) -> Mapping[str, Callable[[Event], list[Event]]]:
        """Quick ways in, where the engine has them and events need not be put in order."""
        if self._publications is not None:
            return {}
        if isinstance(self._engine, StepStream) and self._ordering.lateness == 0:
            return self._engine.pushes(self._ordering, self._push)
        return {}

    # --- why ------------------------------------------------------------------------------------

    @overload
    def why(self, what: Event) -> WhyOutput: ...
    @overload
    def why(self, what: str, key: object = None) -> WhyNot: ...
    def why(self, what: Event | str, key: object = None) -> WhyOutput | WhyNot:
        """Why an output came, or how near a correlation is to putting out its next.

        `why(output)` tells which events caused it, and by which label. `why("Rule")` tells what is
        complete and what it still waits for, for a `key` (several values as a tuple) or, without
        one, for the key that came nearest. The run must have been started with `explain=True`.
        """
        if isinstance(what, Event):
            return self._reasons().why_output(what)
        return self._reasons().why_not(what, key)

    def nearest(self, correlation: str, count: int = 3) -> list[WhyNot]:
        """What `why` tells for the keys that came nearest to an output, the nearest first."""
        return self._reasons().nearest(correlation, count)

    def _reasons(self) -> Explainer:
        if self._explainer is None:
            raise UsageError(
                "this run keeps no reasons: start it with `library.start(explain=True)`"
            )
        return self._explainer

    # --- snapshots ------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All that is needed to go on from here, in this process or another.

        A run by the definitions (the reference engine, or one that explains) saves every event
        that it has read, and reads them again when it is resumed; see `snapshots`.
        """
        order = self._ordering
        settled = order.settled
        engine = self._engine
        if self._publications is not None and self._history is not None:
            raise SnapshotError(
                "a run by the definitions reads its events again when it is resumed, and its"
                ' history would answer otherwise by then: start it with `engine="step"`'
            )
        return write_snapshot(
            Snapshot(
                library=fingerprint(self._library),
                engine=self._engine_name,
                explains=self._explainer is not None,
                order=SavedOrder(
                    order.lateness,
                    None if isinstance(order.latest, float) else order.latest,
                    [save_event(each) for each in order.waiting],
                    [save_event(each) for each in self.late],
                ),
                counts=SavedCounts(
                    self.counts.events,
                    self.counts.outputs,
                    self.counts.late,
                    dict(self.counts.without_key),
                ),
                state=save_stream(engine, settled) if isinstance(engine, StepStream) else None,
                batch=engine.snapshot() if isinstance(engine, ReadsMany) else None,
                history=self._history,
            )
        )

    @classmethod
    def resume(
        cls,
        library: CheckedLibrary,
        snapshot: bytes,
        engine: str | None = None,
        publications: Publications | None = None,
    ) -> Run:
        """Go on from a snapshot, on the engine that it was taken on or on another one."""
        saved = read_snapshot(snapshot, library)
        name = saved.engine if engine is None else choose_engine(engine)
        if name not in ENGINES:
            raise SnapshotError(f"the snapshot is of an engine `{saved.engine}` that is not here")
        if saved.history is not None:
            return cls._replay(library, saved, saved.history, name)
        if saved.state is None and saved.batch is None:
            raise SnapshotError("the snapshot is damaged: there is no state in it")
        if name == "reference":
            raise SnapshotError(
                f"a snapshot of the engine `{saved.engine}` holds its state, and the engine"
                " `reference` goes by the events themselves: resume it with `step` or `batch`"
            )
        run = cls(library, name, saved.order.lateness, publications=publications)
        counts = saved.counts
        run.counts.events, run.counts.outputs = counts.events, counts.outputs
        run.counts.late = counts.late
        run.counts.without_key.update(counts.without_key)
        run.late = [restore_event(each) for each in saved.order.late]
        run._ordering.restore(
            saved.order.latest, [restore_event(each) for each in saved.order.waiting]
        )
        run._restore(library, saved)
        run._pushes = run._routines()
        return run

    def _restore(self, library: CheckedLibrary, saved: Snapshot) -> None:
        """Put the engine where the one that was saved has been."""
        engine = self._engine
        if isinstance(engine, StepStream):
            state = saved.state
            if saved.batch is not None:
                from ensue.engine.batch.saved.exchanging import stream_of_batch

                state = stream_of_batch(saved.batch, library, saved.library)
            if state is not None:
                restore_stream(engine, library, state)
        elif isinstance(engine, ReadsMany):
            if saved.batch is not None:
                engine.restore(saved.batch)
            elif saved.state is not None:
                from ensue.engine.batch.engine import BatchEngine
                from ensue.engine.batch.saved.exchanging import restore_from_step

                assert isinstance(engine, BatchEngine)
                restore_from_step(engine, library, saved.state, self._ordering.settled)

    @classmethod
    def _replay(
        cls, library: CheckedLibrary, saved: Snapshot, history: History, engine: str
    ) -> Run:
        match history:
            case [("library", str(text)), *rest]:
                is_same = text == print_library(library.tree)
                begun = library if is_same else checked_source(Source.of(text), library.ontology)
            case _:
                raise SnapshotError("the snapshot is damaged: its history has no beginning")
        explains = saved.explains and engine == saved.engine
        run = cls(begun, engine, saved.order.lateness, explains)
        for entry in rest:
            match entry:
                case "event", str(event):
                    run.push(event)
                case "time", int(time):
                    run.advance(time)
                case "library", str(text):
                    run._change(checked_source(Source.of(text), library.ontology))
                case _:
                    raise SnapshotError(f"the snapshot is damaged: `{entry[0]}` is no history")
        return run

    def _read(self, events: Iterable[Event]) -> list[Event]:
        if isinstance(self._engine, ReadsMany):
            return self._count(self._engine.read_all(list(events)))
        if self._publications is not None:
            return self._read_and_keep(events, self._publications)
        return [output for event in events for output in self._count(self._engine.read(event))]

    def _read_and_keep(self, events: Iterable[Event], publications: Publications) -> list[Event]:
        """Read each event with the history as it stands before it, and then keep it there."""
        made: list[Event] = []
        for event in events:
            token = SCOPE_OF.set(partial(AskingScope, history=publications))
            try:
                made += self._count(self._engine.read(event))
            finally:
                SCOPE_OF.reset(token)
            publications.add(event)
        return made

    def _count(self, outputs: list[Event]) -> list[Event]:
        self.counts.outputs += len(outputs)
        return outputs


def time_microseconds(time: Instant) -> int:
    """An instant as engines count time. Raises `UsageError` for what is none."""
    try:
        return instant_of(time)
    except ValueError as error:
        raise UsageError(str(error)) from None


def run_bounded(
    run: Run, events: Iterable[Event], *, sort: bool, until: Instant | None = None
) -> Iterator[Event]:
    """Everything that follows from a bounded input, read in the order of its times if `sort`."""
    ordered = sorted(events, key=lambda each: each.time) if sort else events
    if run.reads_many:
        yield from run.push_all(ordered)
    else:
        for event in ordered:
            yield from run.push(event)
    yield from run.finish(until)


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
