"""The parts of a run as parts of a `Snapshot`, and back.

In come the order, the counts and the engine of a run; out go the parts of a `Snapshot`, and the
other way round. An engine may go on from the state of the other one: `step` from columns, `batch`
from instances. A state that no run can have had is refused with `SnapshotError`. The bytes of a
snapshot are for `snapshots`; the engines write and read their own state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ensue.engine.changing import checked_source
from ensue.engine.choosing import ENGINES, Engine, KnowsTimers, ReadsMany, choose_engine
from ensue.engine.core.saved_rules import damaged, restore_event, save_event
from ensue.engine.counts import Counts
from ensue.engine.running.snapshots import (
    SavedCounts,
    SavedHistory,
    SavedOrder,
    Snapshot,
)
from ensue.engine.step import StepStream
from ensue.engine.step.saving import restore_stream
from ensue.engine.timing.jumps import UNBOUNDED, JumpLike, max_jump
from ensue.engine.timing.ordering import Ordering
from ensue.errors import SnapshotError
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary
from ensue.lang.printer import print_library
from ensue.lang.source import Source


def saved_order(ordering: Ordering, late: Sequence[Event]) -> SavedOrder:
    return SavedOrder(
        ordering.lateness,
        None if isinstance(ordering.latest, float) else ordering.latest,
        [save_event(each) for each in ordering.waiting],
        [save_event(each) for each in late],
        None if ordering.max_jump == UNBOUNDED else int(ordering.max_jump),
        ordering.dissent,
    )


def restore_order(ordering: Ordering, saved: SavedOrder) -> None:
    ordering.restore(saved.latest, [restore_event(each) for each in saved.waiting])
    ordering.dissent = saved.dissent


def saved_counts(counts: Counts) -> SavedCounts:
    without_key = dict(counts.without_key)
    return SavedCounts(counts.events, counts.outputs, counts.late, without_key, counts.begun_anew)


def restore_counts(counts: Counts, saved: SavedCounts) -> None:
    counts.events, counts.outputs, counts.late = saved.events, saved.outputs, saved.late
    counts.without_key.clear()
    counts.without_key.update(saved.without_key)
    counts.begun_anew = saved.begun_anew


class ResumeTerms(NamedTuple):
    """How a run goes on: `max_jump_before` bounds the jumps of the events that it has read."""

    engine: str
    max_jump: float
    max_jump_before: float


def terms_of(
    saved: Snapshot, library: CheckedLibrary, engine: str | None, jump: JumpLike
) -> ResumeTerms:
    """The terms that a snapshot and a caller give; the caller may leave out engine and jump.

    Raises `SnapshotError` if the engine cannot go on from what is saved.
    """
    before = UNBOUNDED if saved.order.max_jump is None else saved.order.max_jump
    allowed = before if jump is None else max_jump(library, jump)
    name = saved.engine if engine is None else choose_engine(engine)
    if name not in ENGINES:
        raise SnapshotError(f"the snapshot is of an engine `{saved.engine}` that is not here")
    if saved.history is not None:
        # What was read once is read again; but a history that was changed must come to an end.
        trusted = before < UNBOUNDED or jump is not None
        return ResumeTerms(
            name, allowed, max(before, allowed) if trusted else max_jump(library, None)
        )
    if saved.state is None and saved.batch is None:
        raise SnapshotError("the snapshot is damaged: there is no state in it")
    if name == "reference":
        raise SnapshotError(
            f"a snapshot of the engine `{saved.engine}` holds its state, and the engine"
            " `reference` goes by the events themselves: resume it with `step` or `batch`"
        )
    return ResumeTerms(name, allowed, before)


def restore_engine(
    engine: Engine, library: CheckedLibrary, saved: Snapshot, settled: int | None
) -> None:
    """Put an engine that has read nothing where the engine of the snapshot was."""
    if isinstance(engine, StepStream):
        state = saved.state
        if saved.batch is not None:
            from ensue.engine.batch.exchanging import stream_of_batch

            state = stream_of_batch(saved.batch, library, saved.library)
        if state is not None:
            restore_stream(engine, library, state)
    elif isinstance(engine, ReadsMany):
        if saved.batch is not None:
            engine.restore(saved.batch)
        elif saved.state is not None:
            from ensue.engine.batch.engine import BatchEngine
            from ensue.engine.batch.exchanging import restore_from_step

            assert isinstance(engine, BatchEngine)
            # What is settled may run ahead of the clock: timers that are due have yet to fire.
            stream = StepStream(library, Counts())
            restore_stream(stream, library, saved.state)
            due = stream.next_due()
            clock = settled if settled is None or due is None else min(settled, due - 1)
            restore_from_step(engine, library, saved.state, clock)


def check_restored(engine: Engine, ordering: Ordering, bound: float) -> None:
    """Raises `SnapshotError` if the clock or timers of the engine stand where they cannot.

    `bound` is how far the clock could jump up to now.
    """
    settled = ordering.settled
    clock = getattr(engine, "clock", None)
    if clock is not None and (settled is None or clock > ordering.latest):
        raise damaged("its clock is ahead of its events")
    due = engine.next_due() if isinstance(engine, KnowsTimers) else None
    if due is not None and (settled is None or settled - due > bound):
        raise damaged("a timer has been due for longer than the clock may jump")


def first_library(history: SavedHistory, library: CheckedLibrary) -> CheckedLibrary:
    """The library that a saved history begins with: the given library, if the texts are equal."""
    match history:
        case [("library", str(text)), *_]:
            return library if text == print_library(library.tree) else named_library(text, library)
    raise SnapshotError("the snapshot is damaged: its history has no beginning")


def named_library(text: str, library: CheckedLibrary) -> CheckedLibrary:
    """A library that a saved history holds as text, with the ontology of the given one."""
    return checked_source(Source.of(text), library.ontology)
