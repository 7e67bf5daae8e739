"""A run of a library over one stream: order, clock, late events, snapshots; around any engine.

In come events as they arrive, each checked against its type; out come outputs in their order, whole
or as they are made. A run puts events in order within its lateness, keeps events that come later in
`late`, and refuses events that lie too far ahead (`timing/jumps`). What an event means is the
engine's. Rules come and go while it runs: `changing` says which of them keep their state. What
bytes a snapshot is stands in `running/snapshots`. Calls from several threads wait for each other.

The module is long because it is the whole surface of a run; the work behind it is in `running`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from threading import RLock
from typing import overload

from ensue.engine.changing import HasTree, with_definitions, without
from ensue.engine.choosing import (
    ENGINES,
    Engine,
    KnowsTimers,
    ReadsMany,
    choose_engine,
    engine_with_history,
)
from ensue.engine.core.saved_rules import restore_event
from ensue.engine.counts import Counts, run_html
from ensue.engine.explain.explainer import Explainer, WhyNot, WhyOutput
from ensue.engine.inputs import EventLike, Instant, as_event, time_microseconds
from ensue.engine.running.admission import Admission, Publications, with_history
from ensue.engine.running.handout import Handout
from ensue.engine.running.holding import Holder, holders_in, keys_held_in
from ensue.engine.running.resuming import (
    ResumeTerms,
    check_restored,
    first_library,
    named_library,
    restore_counts,
    restore_engine,
    restore_order,
    saved_counts,
    saved_order,
    terms_of,
)
from ensue.engine.running.snapshots import (
    SavedHistory,
    Snapshot,
    damaged_if_impossible,
    fingerprint,
    impossible,
    read_snapshot,
    write_snapshot,
)
from ensue.engine.step import StepStream
from ensue.engine.step.saving import save_stream
from ensue.engine.timing.jumps import UNBOUNDED, JumpLike, check_advance
from ensue.engine.timing.ordering import Ordering
from ensue.errors import EnsueError, SnapshotError, UsageError
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary
from ensue.lang.printer import print_library

FastPaths = Mapping[str, Callable[[Event], list[Event]]]
"""For types of events, a function that does all that `push` does for an event in order."""


class Run:
    """One library over one stream. Made by `Library.start` and `Library.resume`.

    A run that explains goes by the definitions and remembers its events, whatever its engine: it
    puts out the same, is slower, and can be asked `why`. One that is never saved (`is_saved`) need
    not keep all that it reads for that.
    """

    def __init__(
        self,
        library: CheckedLibrary,
        engine: str = "auto",
        lateness: int = 0,
        explain: bool = False,
        publications: Publications | None = None,
        max_jump: float = UNBOUNDED,
        is_saved: bool = True,
    ) -> None:
        if publications is not None:
            engine = engine_with_history(engine, explain)
        self._lock = RLock()
        # As bound methods: an event one by one takes less time than `with` does.
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._is_resumed = False
        self._publications = publications
        self.counts = Counts()
        self._library = library
        self._engine_name = choose_engine(engine)
        self._explainer = Explainer(library, self.counts) if explain else None
        self._engine: Engine = self._explainer or ENGINES[self._engine_name](library, self.counts)
        self._ordering = Ordering(lateness, max_jump)
        self._history: SavedHistory | None = None
        if is_saved and not isinstance(self._engine, (StepStream, ReadsMany)):
            # What a snapshot of it is: all that it has read.
            self._history = [("library", print_library(library.tree))]
        self._admission = Admission(
            library.types, self.counts, self._ordering, publications, self._history
        )
        self._handout = Handout(self._lock, self.counts, self._damage_guard, self._open_fast_paths)
        self._fast_paths: FastPaths = {}
        self._open_paths: FastPaths = {}
        self._find_fast_paths()

    # --- events, and time -------------------------------------------------------------------------

    def push(self, event: EventLike) -> list[Event]:
        """Read one event and return what follows from it.

        Raises `EventError` if the event is malformed, does not fit its type, or lies too far ahead
        of the stream; the run goes on as if it had never come. An event that comes too late is kept
        in `late`.
        """
        self._acquire()
        try:
            if event.__class__ is Event:
                push = self._open_paths.get(event.type)
                if push is not None:
                    return push(event)
                if self._passes_by(event):
                    return []
            return self._push(as_event(event))
        except Exception as error:
            if self._is_resumed and not isinstance(error, EnsueError):
                raise impossible(error) from error
            raise
        finally:
            self._release()

    def push_iter(self, event: EventLike) -> Iterator[Event]:
        """What `push` returns, as it is made: for a clock that jumps, and fires very many timers.

        The event is taken, or refused, at once. Outputs that are not asked for wait: whatever is
        called next hands them out first.
        """
        with self._lock:
            is_free = self._handout.is_empty
            if is_free and isinstance(event, Event) and not self._is_due(event.time):
                made = self.push(event)
                if not made:
                    return iter(())
                # Counted again as they are taken.
                self.counts.outputs -= len(made)
                self._open_paths = {}
                return self._handout.hand_out_made(made)
            self._admission.admit(as_event(event))
            return self._hand_out(self._read_ready())

    def _passes_by(self, event: Event) -> bool:
        """Let an event of a type that no rule can read move the clock; False if more happens."""
        ordering, time = self._ordering, event.time
        if (
            not self._open_paths
            or event.type in self._library.types.types
            or not ordering.latest <= time <= ordering.reach
            or self._is_due(time)
        ):
            return False
        ordering.latest = time
        self.counts.events += 1
        return True

    def _push(self, event: Event) -> list[Event]:
        """The slow path, for an event of any kind."""
        if not self._handout.is_empty:
            return list(self.push_iter(event))
        if not self._admission.admit(event):
            return []
        outputs = [output for part in self._read_ready() for output in part]
        self.counts.outputs += len(outputs)
        return outputs

    def _is_due(self, time: int) -> bool:
        """Whether a timer may fire up to a time; true where it is not known."""
        return self._timers is None or self._timers.may_be_due(time)

    @property
    def reads_many(self) -> bool:
        """Whether the engine is better off with many events at once."""
        return self._reads_many

    @property
    def late(self) -> list[Event]:
        """Events that came too late. An owner that has dealt with them empties the list."""
        return self._admission.late

    @late.setter
    def late(self, events: list[Event]) -> None:
        self._admission.late = events

    @property
    def lateness(self) -> int:
        """How far events may be out of order, in microseconds."""
        return self._ordering.lateness

    @property
    def max_jump(self) -> float:
        """How far an event may lie ahead of the events before it, in microseconds, or infinity."""
        return self._ordering.max_jump

    def push_all(self, events: Iterable[EventLike]) -> list[Event]:
        """Read many events, as `push` reads one, and return what follows from them.

        Raises `EventError` at the first that is refused. An engine that reads one event at a time
        has then read the events before it; an engine that reads many has read none of them.
        """
        return list(self.push_all_iter(events))

    def push_all_iter(self, events: Iterable[EventLike]) -> Iterator[Event]:
        """What `push_all` returns, as it is made."""
        if not self._reads_many:
            return (output for event in events for output in self.push_iter(event))
        with self._lock:
            self._admission.admit_all(map(as_event, events))
            return self._hand_out(self._read_ready())

    def takes(self, event: EventLike) -> bool:
        """Whether `push` would take an event now: it fits its type, and is not too far ahead."""
        with self._lock:
            return self._admission.takes(as_event(event))

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

    def end_of_waiting(self) -> int | None:
        """The time to which `advance` reads all events that wait to be put in order, if any does.

        Unlike after `finish`, the stream can go on then: what is older comes too late.
        """
        with self._lock:
            waiting = self._ordering.waiting
            return waiting[-1].time + self._ordering.lateness if waiting else None

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
        if self._admission.before is not None:
            before, self._admission.before = self._admission.before, None
            yield from self._read(before)
            self._begin_anew()
        yield from self._read(self._ordering.ready())

    def _begin_anew(self) -> None:
        """Go on as if the stream began here."""
        if self._explainer is not None:
            self._explainer = Explainer(self._library, self.counts)
        self._engine = self._explainer or ENGINES[self._engine_name](self._library, self.counts)
        self._find_fast_paths()
        if not self._handout.is_empty:
            self._open_paths = {}

    def _read(self, events: Iterable[Event]) -> Iterator[list[Event]]:
        if self._reads_many and isinstance(self._engine, ReadsMany):
            yield from self._engine.read_all_in_parts(list(events))
            return
        for event in events:
            if self._publications is None:
                yield from self._engine.read_in_parts(event)
            else:
                # An event is read with the history as it stands before it, and then kept there.
                yield from with_history(self._engine.read_in_parts(event), self._publications)
                self._publications.add(event)

    def _hand_out(self, parts: Iterator[list[Event]]) -> Iterator[Event]:
        # The fast paths know nothing of outputs that are left.
        self._open_paths = {}
        return self._handout.hand_out(parts)

    def _damage_guard(self) -> AbstractContextManager[None]:
        """Turns failures of a resumed state into a `SnapshotError` about its snapshot."""
        return damaged_if_impossible() if self._is_resumed else nullcontext()

    # --- rules that come and go -----------------------------------------------------------------

    @property
    def text(self) -> str:
        """The library that runs now, as text. A snapshot is resumed with a library of this text."""
        return print_library(self._library.tree)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that run now."""
        return tuple(each.name for each in self._library.correlations)

    @property
    def keys_held(self) -> int:
        """For how many keys the rules hold something: a key that is done or has aged is let go."""
        with self._lock:
            return keys_held_in(self._engine)

    def holders(self) -> list[Holder]:
        """The rules that run now, each with the keys that it holds."""
        return holders_in(self._engine)

    def add(self, definitions: str | HasTree) -> None:
        """Run more rules from now on: a text, or a library, of types and correlations.

        They start at the next event. A type may be declared again, if it is declared alike.
        Raises `LibraryError`, and leaves what runs as it was, if a name is taken or anything in the
        whole is wrong.
        """
        with self._lock:
            self._change(with_definitions(self._library, definitions, replacing=False))

    def replace(self, definitions: str | HasTree) -> None:
        """Run definitions in place of those with equal names; definitions with new names are added.

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
        with self._lock:
            self._change(library.checked)

    def _change(self, library: CheckedLibrary) -> None:
        self._handout.require_empty()
        self._engine.change(library)
        self._library = library
        self._admission.types = library.types
        self._find_fast_paths()
        if self._history is not None:
            self._history.append(("library", print_library(library.tree)))

    def _find_fast_paths(self) -> None:
        """Ask the engine for fast paths, where events need not be put in order."""
        # To ask an object for its protocol takes longer than to read an event.
        self._timers = self._engine if isinstance(self._engine, KnowsTimers) else None
        self._reads_many = isinstance(self._engine, ReadsMany)
        has_fast_paths = self._publications is None and self._ordering.lateness == 0
        self._fast_paths = {}
        if has_fast_paths and isinstance(self._engine, StepStream):
            self._fast_paths = self._engine.pushes(self._ordering, self._push)
        self._open_fast_paths()

    def _open_fast_paths(self) -> None:
        self._open_paths = self._fast_paths

    def _repr_html_(self) -> str:
        """How a notebook shows a run."""
        return run_html(self.rules, self._engine_name, self.counts)

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
        with self._lock, self._damage_guard():
            return write_snapshot(self._saved(), key)

    def _saved(self) -> Snapshot:
        self._handout.require_empty()
        engine, settled = self._engine, self._ordering.settled
        if self._publications is not None and self._history is not None:
            raise SnapshotError(
                "a run by the definitions reads its events again when it is resumed, and its"
                ' history would answer otherwise by then: start it with `engine="step"`'
            )
        return Snapshot(
            library=fingerprint(self._library),
            engine=self._engine_name,
            explains=self._explainer is not None,
            order=saved_order(self._ordering, self.late),
            counts=saved_counts(self.counts),
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
            terms = terms_of(saved, library, engine, jump)
            if saved.history is None:
                return cls._restored(library, saved, terms, publications)
            return cls._replayed(library, saved, saved.history, terms)

    @classmethod
    def _restored(
        cls,
        library: CheckedLibrary,
        saved: Snapshot,
        terms: ResumeTerms,
        publications: Publications | None,
    ) -> Run:
        """A run in the state that a snapshot holds."""
        run = cls(
            library,
            terms.engine,
            saved.order.lateness,
            publications=publications,
            max_jump=terms.max_jump,
        )
        restore_counts(run.counts, saved.counts)
        run.late = [restore_event(each) for each in saved.order.late]
        restore_order(run._ordering, saved.order)
        restore_engine(run._engine, library, saved, run._ordering.settled)
        check_restored(run._engine, run._ordering, terms.max_jump_before)
        run._is_resumed = True
        run._find_fast_paths()
        return run

    @classmethod
    def _replayed(
        cls, library: CheckedLibrary, saved: Snapshot, history: SavedHistory, terms: ResumeTerms
    ) -> Run:
        """A run that has read again everything that a snapshot says was read."""
        run = cls(
            first_library(history, library),
            terms.engine,
            saved.order.lateness,
            explain=saved.explains and terms.engine == saved.engine,
            max_jump=terms.max_jump_before,
        )
        for entry in history[1:]:
            match entry:
                case "event", str(event):
                    run.push(event)
                case "time", int(time):
                    run.advance(time)
                case "library", str(text):
                    run._change(named_library(text, library))
                case _:
                    raise SnapshotError(f"the snapshot is damaged: `{entry[0]}` is no history")
        run._ordering.bound_jumps(terms.max_jump)
        run._ordering.dissent = saved.order.dissent
        restore_counts(run.counts, saved.counts)
        run._find_fast_paths()
        return run


def run_bounded(
    run: Run, events: Iterable[Event], *, sort: bool, until: Instant | None = None
) -> Iterator[Event]:
    """Everything that follows from a bounded input, read in the order of its times if `sort`."""
    ordered = sorted(events, key=lambda each: each.time) if sort else events
    yield from run.push_all_iter(ordered)
    yield from run.finish_iter(until)
