"""Ways in which an engine runs a trial: none of them may change what it puts out.

In come a trial and a way; out goes what was observed. Before each piece of the stream the run may
be saved and brought back, go on with another engine, be told that time has passed, or be given
other rules. The seed of the trial decides where: two runs of a trial cut, and change their rules,
alike on any engine. So the reference engine is the judge where rules come and go, of which the
readings of the definitions know nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

import ensue
from ensue.engine.run import Run, run_bounded
from ensue.engine.sizes import small_sizes
from ensue.errors import LibraryError, SnapshotError, UsageError
from ensue.events.event import Event

from .observed import Observed
from .trials import Trial

MOVABLE = ("step", "batch")
CANNOT_MOVE = ("cannot move to another engine", "goes by the events themselves")
PIECES = (0, 1, 1, 2, 3, 7, 20)


@dataclass(frozen=True)
class Way:
    """How a run goes: its engine, whether the stream is cut, and the chances before each piece.

    With `small`, sizes at which engines change how they work are so small that the run goes through
    such changes. `from_tables` reads the library from the tables of its machines.
    """

    engine: str
    in_pieces: bool = False
    saved: float = 0.0
    moved: float = 0.0
    changed: float = 0.0
    advanced: float = 0.0
    explained: bool = False
    small: bool = False
    from_tables: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether nothing happens on the way, so that the input is run as a whole."""
        chances = self.saved + self.moved + self.changed + self.advanced
        return not self.in_pieces and not chances

    @property
    def of_judge(self) -> Way:
        """The same changes of rules on the reference engine, with nothing else on the way."""
        return Way("reference", self.in_pieces, changed=self.changed)


WAYS: Mapping[str, Way] = {
    "reference": Way("reference"),
    "step": Way("step"),
    "step, saved": Way("step", saved=0.2, advanced=0.05),
    "step, explained": Way("step", explained=True),
    "step, small": Way("step", saved=0.1, small=True),
    "step, from tables": Way("step", from_tables=True),
    "step, rules changed": Way("step", changed=0.06, saved=0.1),
    "batch": Way("batch"),
    "batch, one by one": Way("batch", advanced=0.05),
    "batch, in pieces": Way("batch", in_pieces=True, saved=0.2, advanced=0.05),
    "batch, small": Way("batch", in_pieces=True, saved=0.2, small=True),
    "batch, rules changed": Way("batch", in_pieces=True, changed=0.06, saved=0.1),
    "moved": Way("reference", in_pieces=True, moved=0.3),
    "moved, small": Way("step", in_pieces=True, moved=0.3, saved=0.1, small=True),
    "moved, rules changed": Way("step", in_pieces=True, moved=0.2, changed=0.06, saved=0.1),
}


def observe(trial: Trial, way: Way, happened: Counter[str] | None = None) -> Observed:
    """What comes out; a crash is observed too. `happened` counts what has gone on on the way."""
    sizes: AbstractContextManager[None] = small_sizes(trial.seed) if way.small else nullcontext()
    with sizes:
        try:
            return _Running(trial, way, Counter() if happened is None else happened).to_its_end()
        except Exception as error:
            return Observed.failed(error)


def started(trial: Trial, library: ensue.Library, way: Way) -> Run:
    lateness = timedelta(microseconds=trial.lateness or 0)
    return library.start(way.engine, lateness, explain=way.explained)


def in_pieces(events: Sequence[Any], draw: Random) -> Iterator[Sequence[Any]]:
    """The events in pieces of odd sizes, some of them empty."""
    start = 0
    while start < len(events):
        size = draw.choice(PIECES)
        yield events[start : start + size]
        start += size


class _Running:
    """A run on its way through a trial."""

    def __init__(self, trial: Trial, way: Way, happened: Counter[str]) -> None:
        self.trial = trial
        self.way = way
        self.happened = happened
        library = trial.library
        self.library = ensue.Library.from_tables(library.tables()) if way.from_tables else library
        self.run = started(trial, self.library, way)
        self.refused: list[str] = []
        # Apart from each other, so that what happens to a run does not change its rules otherwise.
        self.cuts, self.changes, self.draw = (
            Random(f"{trial.seed} {name}") for name in ("cuts", "changes", "way")
        )

    def to_its_end(self) -> Observed:
        if self.way.is_bounded:
            sort = self.trial.lateness is None
            events = self.trial.events
            made = list(run_bounded(self.run, events, sort=sort, until=self.trial.until))
        else:
            made = [output for piece in self._pieces() for output in self._read(piece)]
            made += self.run.finish(self.trial.until)
        self.happened["outputs"] += len(made)
        seen = Observed.of(made, self.run.late)
        return replace(seen, refused=self.refused, counts=self.run.counts)

    def _pieces(self) -> Iterator[Sequence[Event]]:
        events = self.trial.in_order
        return in_pieces(events, self.cuts) if self.way.in_pieces else ([e] for e in events)

    def _read(self, piece: Sequence[Event]) -> list[Event]:
        way, draw = self.way, self.draw
        made: list[Event] = []
        if self.changes.random() < way.changed:
            self._change_rules()
        if draw.random() < way.saved:
            self.run = self.library.resume(self.run.snapshot())
            self.happened["saved"] += 1
        if draw.random() < way.moved:
            self._move()
        if piece and draw.random() < way.advanced and self.trial.lateness is None:
            # Neither reading of the definitions can tell a clock that moves by itself from this.
            made += self.run.advance(piece[0].time - draw.choice([0, 0, 300, 1000]))
        return made + (self.run.push(piece[0]) if len(piece) == 1 else self.run.push_all(piece))

    def _move(self) -> None:
        try:
            self.run = self.library.resume(self.run.snapshot(), self.draw.choice(MOVABLE))
            self.happened["moved"] += 1
        except SnapshotError as error:
            if not any(each in str(error) for each in CANNOT_MOVE):
                raise

    def _change_rules(self) -> None:
        """Rules are replaced, added or removed; what is refused must be so on every engine."""
        draw, trial = self.changes, self.trial
        names = trial.library.correlations.names
        gone = draw.sample(names, draw.randint(1, len(names)))
        text = draw.choice([*trial.changes, trial.text])
        try:
            if draw.random() < 0.2:
                self.run.remove(*gone)
            else:
                self.run.replace(text)
            self.happened["changed"] += 1
        except (LibraryError, UsageError) as error:
            self.refused.append(f"{type(error).__name__}: {error}".splitlines()[0])
        self.library = ensue.parse(self.run.text)
