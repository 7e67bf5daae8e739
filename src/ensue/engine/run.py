"""A run of a library over one stream: order, clock, late events, snapshots; around any engine.

In come events as they arrive, each checked against its type; out come outputs in their order, whole
or as they are made. A run puts events in order within its lateness, keeps those that come later
than that in `late`, and refuses those that lie too far ahead (`jumps`). What an event means is the
engine's. Rules come and go while it runs; what of it is kept, and what bytes a snapshot is, is told
in `changing` and `snapshots`. Calls from several threads are taken one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from itertools import chain
from threading import RLock
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
from ensue.engine.core.saved.rules import damaged, restore_event, save_event
from ensue.engine.counts import Counts
from ensue.engine.explaining import Explainer, WhyNot, WhyOutput
from ensue.engine.jumps import (
    UNBOUNDED,
    JumpLike,
    check_advance,
    jump_problem,
    max_jump,
)
from ensue.engine.ordering import Ordering
from ensue.engine.snapshots import (
    BOUND_OF_RULES,
    History,
    SavedCounts,
    SavedOrder,
    Snapshot,
    damaged_if_impossible,
    fingerprint,
    impossible,
    read_snapshot,
    write_snapshot,
)
from ensue.engine.step import StepStream
from ensue.engine.step.saving import restore_stream, save_stream
from ensue.errors import EnsueError, EventError, SnapshotError, UsageError
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
        max_jump: float = UNBOUNDED,
    ) -> None:
        if publications is not None:
            engine = engine_with_history(engine, explain)
        self._lock = RLock()
        self._left: Iterator[Event] | None = None
        self._is_resumed = False
        self._publications = publications
        self.counts = Counts()
        self.late: list[Event] = []
        self._library = library
        self._engine_name = choose_engine(engine)
        self._explainer = Explainer(library, self.counts) if explain else None
        self._engine: Engine = self._explainer or make_engine(
            self._engine_name, library, self.counts
        )
        # What is left of the stream before its clock has begun anew.
        self._before: list[Event] | None = None
        self._ordering = Ordering(lateness, max_jump)
        self._history: History | None = None
        if not isinstance(self._engine, (StepStream, ReadsMany)):
            self._history = [("library", print_library(library.tree))]
        self._quick = self._pushes = self._routines()

    # --- events, and time -------------------------------------------------------------------------

    def push(self, event: EventLike) -> list[Event]:
        """Read one event and return what follows from it.

        Raises `EventError` if the event is malformed, does not fit its type, or lies too far ahead
        of the stream; the run goes on as if it had never come. An event that comes too late is kept
        in `late`.
        """
        with self._lock:
            try:
                if event.__class__ is Event:
                    push = self._pushes.get(event.type)
                    if push is not None:
                        return push(event)
                return self._push(as_event(event))
            except Exception as error:
                if self._is_resumed and not isinstance(error, EnsueError):
                    raise impossible(error) from error
                raise

    def push_iter(self, event: EventLike) -> Iterator[Event]:
        """What `push` returns, as it is made: for a clock that jumps, and fires very many timers.

        The event is taken, or refused, at once. Outputs that are not asked for wait: whatever is
        called next hands them out first.
        """
        with self._lock:
            if self._left is None and isinstance(event, Event) and not self._is_due(event.time):
                return iter(self.push(event))
            self._admit(as_event(event))
            return self._hand_out(self._read_ready())

    def _push(self, event: Event) -> list[Event]:
        """The general way in, for whatever an event may turn out to be."""
        if self._left is not None:
            return list(self.push_iter(event))
        if not self._admit(event):
            return []
        return self._count([output for part in self._read_ready() for output in part])

    def _is_due(self, time: int) -> bool:
        """Whether a timer may fire up to a time; true where it is not known."""
        return not isinstance(self._engine, KnowsTimers) or self._engine.may_be_due(time)

    @property
    def reads_many(self) -> bool:
        """Whether the engine is better off with many events at once."""
        return isinstance(self._engine, ReadsMany)

    @property
    def max_jump(self) -> float:
        """How far an event may lie ahead of those before it, in microseconds; may be infinite."""
        return self._ordering.max_jump

    def push_all(self, events: Iterable[EventLike]) -> list[Event]:
        """Read many events, as `push` reads one, and return what follows from them.

        Raises `EventError` at the first that is refused. An engine that reads one event at a time
        has then read those before it; one that reads many has read none of them.
        """
        return list(self.push_all_iter(events))

    def push_all_iter(self, events: Iterable[EventLike]) -> Iterator[Event]:
        """What `push_all` returns, as it is made."""
        if not isinstance(self._engine, ReadsMany):
            return (output for event in events for output in self.push_iter(event))
        with self._lock:
            # All of them first: what is taken into the order and then not read would be lost.
            conformed = [conform(as_event(event), self._library.types) for event in events]
            latest = self._ordering.latest
            for place, event in enumerate(conformed):
                if event.time - latest > self.max_jump and latest > -math.inf:
                    if place == 0 and self._ordering.is_believed(event.time, self.counts.events):
                        self._begin_anew()
                    else:
                        raise EventError([jump_problem(event.time, int(latest), self.max_jump)])
                latest = max(latest, event.time)
            for event in conformed:
                self._is_in_time(event)
            return self._hand_out(self._read_ready())

    def _admit(self, event: Event) -> bool:
        """Take an event that fits, or raise `EventError`. False if it comes too late."""
        ready = conform(event, self._library.types)
        if self._publications is not None:
            self._publications.check(ready)
        if self._ordering.is_ahead(ready.time):
            latest = int(self._ordering.latest)
            if not self._ordering.is_believed(ready.time, self.counts.events):
                raise EventError([jump_problem(ready.time, latest, self.max_jump)])
            self._begin_anew()
        if self._history is not None:
            self._history.append(("event", cloudevents.encode(ready).decode()))
        return self._is_in_time(ready)

    def takes(self, event: EventLike) -> bool:
        """Whether `push` would take an event now: it fits its type, and is not too far ahead."""
        with self._lock:
            try:
                ready = conform(as_event(event), self._library.types)
            except EventError:
                return False
            return not self._ordering.is_ahead(ready.time)

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
        """Tell the run that its stream has come to a time, and return what follows from that.

        Raises `UsageError` if the clock may not jump as far.
        """
        return list(self.advance_iter(time))

    def advance_iter(self, time: Instant) -> Iterator[Event]:
        """What `advance` returns, as it is made."""
        with self._lock:
            time = time_microseconds(time)
            check_advance(time, self._ordering.latest, self.max_jump)
            if self._history is not None:
                self._history.append(("time", time))
            self._ordering.observe(time)
            return self._hand_out(chain(self._read_ready(), self._settle()))

    def _settle(self) -> Iterator[list[Event]]:
        settled = self._ordering.settled
        if settled is not None:
            yield from self._engine.advance_in_parts(settled)

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
        with self._lock:
            due = [self._engine.next_due(), self._ordering.next_waiting]
        known = [each for each in due if each is not None]
        return min(known) + self._ordering.lateness if known else None

    def finish(self, until: Instant | None = None) -> list[Event]:
        """End the stream: read what still waits to be put in order, then go on to `until`."""
        return list(self.finish_iter(until))

    def finish_iter(self, until: Instant | None = None) -> Iterator[Event]:
        """What `finish` returns, as it is made."""
        with self._lock:
            end = None if until is None else time_microseconds(until)
            if end is None:
                return self._hand_out(self._read(self._ordering.rest()))
            check_advance(end, self._ordering.latest, self.max_jump)
            after = self._engine.advance_in_parts(end)
            return self._hand_out(chain(self._read(self._ordering.rest()), after))

    def _read_ready(self) -> Iterator[list[Event]]:
        if self._before is not None:
            before, self._before = self._before, None
            yield from self._read(before)
            self._restart()
        yield from self._read(self._ordering.ready())

    def _begin_anew(self) -> None:
        """Go on from the next event as if the stream began there; what waited is read first."""
        self._before = [*(self._before or ()), *self._ordering.begin_anew()]
        self.counts.begun_anew += 1
        if self._history is not None:
            self._history = [("library", self.text)]

    def _restart(self) -> None:
        if self._explainer is not None:
            self._explainer = Explainer(self._library, self.counts)
        self._engine = self._explainer or make_engine(self._engine_name, self._library, self.counts)
        self._quick = self._routines()
        self._pushes = self._quick if self._left is None else {}

    def _read(self, events: Iterable[Event]) -> Iterator[list[Event]]:
        if isinstance(self._engine, ReadsMany):
            yield from self._engine.read_all_in_parts(list(events))
            return
        for event in events:
            if self._publications is None:
                yield from self._engine.read_in_parts(event)
            else:
                # An event is read with the history as it stands before it, and then kept there.
                yield from _asking(self._engine.read_in_parts(event), self._publications)
                self._publications.add(event)

    def _hand_out(self, parts: Iterator[list[Event]]) -> Iterator[Event]:
        """The outputs that are left from earlier calls, and then these."""
        outputs = chain.from_iterable(parts)
        self._left = outputs if self._left is None else chain(self._left, outputs)
        # The quick ways in know nothing of outputs that are left.
        self._pushes = {}
        return self._handed_out()

    def _handed_out(self) -> Iterator[Event]:
        while True:
            with self._lock, self._told_as_damage():
                output = None if self._left is None else next(self._left, None)
                if output is None:
                    self._left = None
                    self._pushes = self._quick
                    return
                self.counts.outputs += 1
            yield output

    def _told_as_damage(self) -> AbstractContextManager[None]:
        """What a state brings about that cannot be is told of the snapshot that it came from."""
        return damaged_if_impossible() if self._is_resumed else nullcontext()

    def _require_nothing_left(self) -> None:
        if self._left is not None:
            raise UsageError(
                "outputs of this run are still to be taken: take all that `push_iter` and its like"
                " hand out first"
            )

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
        with self._lock:
            self._change(with_definitions(self._library, definitions, replacing=False))

    def replace(self, definitions: str | HasTree) -> None:
        """Run these in place of those with the same names; what has a new name is added.

        A replaced rule takes the place of the old one and starts afresh; a rule that means the same
        as before keeps its state, and so do all others. Raises `LibraryError`, and leaves what
        runs as it was, if anything in the whole is wrong.
        """
        with self._lock:
            self._change(with_definitions(self._library, definitions, replacing=True))

    def remove(self, *names: str) -> None:
        """Stop these rules (or forget these types). What they were in the middle of is dropped.

        Raises `UsageError` for a name that does not run, and `LibraryError` if what is left
        needs it.
        """
        with self._lock:
            self._change(without(self._library, names))

    def change(self, library: HasTree) -> None:
        """Run another library from now on. A rule that means the same keeps its state."""
        self._change(library.checked)

    def _change(self, library: CheckedLibrary) -> None:
        self._require_nothing_left()
        self._engine.change(library)
        self._library = library
        self._quick = self._pushes = self._routines()
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

    def snapshot(self, key: bytes | None = None) -> bytes:
        """All that is needed to go on from here, in this process or another.

        With a `key` it is signed, and goes on only where that key is given again.

        A run by the definitions (the reference engine, or one that explains) saves every event
        that it has read, and reads them again when it is resumed; see `snapshots`.
        """
        with self._lock, self._told_as_damage():
            return write_snapshot(self._saved(), key)

    def _saved(self) -> Snapshot:
        self._require_nothing_left()
        order = self._ordering
        settled = order.settled
        engine = self._engine
        if self._publications is not None and self._history is not None:
            raise SnapshotError(
                "a run by the definitions reads its events again when it is resumed, and its"
                ' history would answer otherwise by then: start it with `engine="step"`'
            )
        return Snapshot(
            library=fingerprint(self._library),
            engine=self._engine_name,
            explains=self._explainer is not None,
            order=SavedOrder(
                order.lateness,
                None if isinstance(order.latest, float) else order.latest,
                [save_event(each) for each in order.waiting],
                [save_event(each) for each in self.late],
                None if order.max_jump == UNBOUNDED else int(order.max_jump),
                order.dissent,
            ),
            counts=SavedCounts(
                self.counts.events,
                self.counts.outputs,
                self.counts.late,
                dict(self.counts.without_key),
                self.counts.begun_anew,
            ),
            state=save_stream(engine, settled) if isinstance(engine, StepStream) else None,
            batch=engine.snapshot() if isinstance(engine, ReadsMany) else None,
            history=self._history,
        )

    @classmethod
    def resume(
        cls,
        library: CheckedLibrary,
        snapshot: bytes,
        engine: str | None = None,
        publications: Publications | None = None,
        jump: JumpLike = None,
        key: bytes | None = None,
    ) -> Run:
        """Go on from a snapshot, on the engine that it was taken on or on another one."""
        saved = read_snapshot(snapshot, library, key)
        with damaged_if_impossible():
            return cls._resumed(library, saved, engine, publications, jump)

    @classmethod
    def _resumed(
        cls,
        library: CheckedLibrary,
        saved: Snapshot,
        engine: str | None,
        publications: Publications | None,
        jump: JumpLike,
    ) -> Run:
        before = _saved_jump(saved.order.max_jump, library)
        allowed = before if jump is None else max_jump(library, jump)
        name = saved.engine if engine is None else choose_engine(engine)
        if name not in ENGINES:
            raise SnapshotError(f"the snapshot is of an engine `{saved.engine}` that is not here")
        if saved.history is not None:
            # What was read once is read again; but a history that was changed must come to an end.
            trusted = before < UNBOUNDED or jump is not None
            bound = max(before, allowed) if trusted else max_jump(library, None)
            run = cls._replay(library, saved, saved.history, name, bound)
            run._ordering.max_jump = allowed
            run._restore_counts(saved)
            run._quick = run._pushes = run._routines()
            return run
        if saved.state is None and saved.batch is None:
            raise SnapshotError("the snapshot is damaged: there is no state in it")
        if name == "reference":
            raise SnapshotError(
                f"a snapshot of the engine `{saved.engine}` holds its state, and the engine"
                " `reference` goes by the events themselves: resume it with `step` or `batch`"
            )
        run = cls(library, name, saved.order.lateness, publications=publications, max_jump=allowed)
        run._restore_counts(saved)
        run.late = [restore_event(each) for each in saved.order.late]
        run._ordering.restore(
            saved.order.latest, [restore_event(each) for each in saved.order.waiting]
        )
        run._restore(library, saved)
        run._check_restored(before)
        run._is_resumed = True
        run._quick = run._pushes = run._routines()
        return run

    def _restore_counts(self, saved: Snapshot) -> None:
        counts, found = self.counts, saved.counts
        counts.events, counts.outputs, counts.late = found.events, found.outputs, found.late
        counts.without_key.clear()
        counts.without_key.update(found.without_key)
        counts.begun_anew = found.begun_anew
        self._ordering.dissent = saved.order.dissent

    def _check_restored(self, bound: float) -> None:
        """Raises `SnapshotError` if the clock or timers of the engine stand where they cannot.

        `bound` is how far the clock could jump up to now.
        """
        settled, engine = self._ordering.settled, self._engine
        clock = getattr(engine, "clock", None)
        if clock is not None and (settled is None or clock > self._ordering.latest):
            raise damaged("its clock is ahead of its events")
        due = engine.next_due() if isinstance(engine, KnowsTimers) else None
        if due is not None and (settled is None or settled - due > bound):
            raise damaged("a timer has been due for longer than the clock may jump")

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
        cls,
        library: CheckedLibrary,
        saved: Snapshot,
        history: History,
        engine: str,
        bound: float,
    ) -> Run:
        match history:
            case [("library", str(text)), *rest]:
                is_same = text == print_library(library.tree)
                begun = library if is_same else checked_source(Source.of(text), library.ontology)
            case _:
                raise SnapshotError("the snapshot is damaged: its history has no beginning")
        explains = saved.explains and engine == saved.engine
        run = cls(begun, engine, saved.order.lateness, explains, max_jump=bound)
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

    def _count(self, outputs: list[Event]) -> list[Event]:
        self.counts.outputs += len(outputs)
        return outputs


def _saved_jump(saved: int | None, library: CheckedLibrary) -> float:
    """The bound that a snapshot has; one from before there was a bound has that of its rules."""
    if saved == BOUND_OF_RULES:
        return max_jump(library, None)
    return UNBOUNDED if saved is None else saved


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
    yield from run.push_all_iter(ordered)
    yield from run.finish_iter(until)


def _asking(parts: Iterator[list[Event]], publications: Publications) -> Iterator[list[Event]]:
    """The same parts, each made while predicates can ask the history."""
    while True:
        token = SCOPE_OF.set(partial(AskingScope, history=publications))
        try:
            part = next(parts, None)
        finally:
            SCOPE_OF.reset(token)
        if part is None:
            return
        yield part


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
