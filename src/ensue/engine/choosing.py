"""The engines by name, the protocols that they fill, and the choice of one for a library.

In comes a name from a user; out goes the engine of that name. `auto` is `step`. Each engine is a
package of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from ensue.engine.counts import Counts
from ensue.errors import UsageError
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary


class Engine(Protocol):
    """An engine: it reads events that are in order, moves its clock, and changes its rules.

    Outputs come in parts, so that those of a clock that jumps need not all be held at once.
    """

    def read_in_parts(self, event: Event) -> Iterator[list[Event]]: ...

    def advance_in_parts(self, time: int) -> Iterator[list[Event]]: ...

    def change(self, library: CheckedLibrary) -> None: ...


@runtime_checkable
class ReadsMany(Protocol):
    """An engine for batches: it reads many events at once, and saves its own state."""

    def read_all_in_parts(self, events: Sequence[Event]) -> Iterator[list[Event]]: ...

    def snapshot(self) -> bytes: ...

    def restore(self, snapshot: bytes) -> None: ...


@runtime_checkable
class KnowsTimers(Protocol):
    """An engine that can say when its next timer is due."""

    def next_due(self) -> int | None: ...

    def may_be_due(self, time: int) -> bool:
        """Whether a timer may fire up to a time; quick, and may be true although none fires."""


# Engines take time to load, Arrow and compiled loops above all: only the one that runs is loaded.


def _reference_engine(library: CheckedLibrary, counts: Counts) -> Engine:
    from ensue.engine.reference import reference_engine

    return reference_engine(library, counts)


def _step_engine(library: CheckedLibrary, counts: Counts) -> Engine:
    from ensue.engine.step import StepStream

    return StepStream(library, counts)


def _batch_engine(library: CheckedLibrary, counts: Counts) -> Engine:
    from ensue.engine.batch import BatchEngine

    return BatchEngine(library, counts)


ENGINES: Mapping[str, Callable[[CheckedLibrary, Counts], Engine]] = {
    "reference": _reference_engine,
    "step": _step_engine,
    "batch": _batch_engine,
}


def choose_engine(name: str) -> str:
    if name == "auto":
        return "step"
    if name not in ENGINES:
        known = ", ".join(f"`{each}`" for each in ["auto", *ENGINES])
        raise UsageError(f"there is no engine `{name}` here; choose one of {known}")
    return name


def engine_with_history(name: str, explain: bool) -> str:
    """The engine of a run that asks a history.

    The history changes with every event, so that events are read one by one, and cannot be read
    again later for an explanation.
    """
    if explain:
        raise UsageError(
            "a run with a history cannot explain itself: it would ask the history again, and that"
            " has gone on; leave out `explain`"
        )
    return "step" if choose_engine(name) == "batch" else name
