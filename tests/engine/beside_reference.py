"""A run beside the reference engine: both put out the same, whatever happens on the way.

In come a library of random rules, events, and a `Way`: how the stream is cut, and how often the run
is saved and brought back, moved to the other engine, told that time has passed, or given other
rules. A seed decides where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.many.group import GroupMember
from ensue.engine.run import Run
from ensue.engine.step import StepStream
from ensue.errors import SnapshotError
from ensue.events.event import Event
from tests.engine.random_rules import READER, rule
from tests.oracle.agreement import as_text

CANNOT_MOVE = "cannot move to another engine"


@dataclass(frozen=True)
class Way:
    """How a stream is cut, and what may happen to a run before it reads a piece: the chances."""

    in_batches: bool = False
    saved: float = 0.0
    moved: float = 0.0
    changed: float = 0.0
    advanced: float = 0.05


def follow(
    library: ensue.Library, kind: str, given: Sequence[Event], seed: int, engine: str, way: Way
) -> tuple[Run, Counter[str]]:
    """The run at its end, and how often each thing has happened on the way.

    Rules in groups are counted anew for each piece.
    """
    draw, happened = Random(seed), Counter[str]()
    judge, run = library.start("reference"), library.start(engine)
    for piece in cut(given, draw) if way.in_batches else [[event] for event in given]:
        if draw.random() < way.changed:
            _change_rules([judge, run], kind, draw)
            library = ensue.parse(judge.text)
            happened["changed"] += 1
        if draw.random() < way.saved:
            run = library.resume(run.snapshot(), engine=engine)
            happened["saved"] += 1
        if draw.random() < way.moved:
            other = "batch" if engine == "step" else "step"
            try:
                run = library.resume(run.snapshot(), engine=other)
                engine = other
                happened["moved"] += 1
            except SnapshotError as error:
                if CANNOT_MOVE not in str(error):
                    raise
        if draw.random() < way.advanced:
            now = piece[0].time - draw.choice([0, 0, 300, 1000])
            _compare(run.advance(now), judge.advance(now), seed, piece)
        expected = judge.push_all(piece)
        happened["outputs"] += len(expected)
        happened["grouped"] += grouped(run)
        _compare(run.push_all(piece), expected, seed, piece)
    until = given[-1].time + draw.choice([0, 1000, 20_000])
    _compare(run.finish(until), judge.finish(until), seed, until)
    assert run.counts == judge.counts, seed
    return run, happened


def cut(events: Sequence[Event], draw: Random) -> list[Sequence[Event]]:
    """The events in pieces of odd sizes."""
    pieces, start = [], 0
    while start < len(events):
        size = draw.choice([1, 1, 2, 3, 7, 20])
        pieces.append(events[start : start + size])
        start += size
    return pieces


def _change_rules(runs: Sequence[Run], kind: str, draw: Random) -> None:
    """Rules are removed, or one is replaced or added: now and then one that others feed.

    That one goes with the next change, since rules that feed others are in no group.
    """
    names = [each.name for each in ensue.parse(runs[0].text).correlations]
    if "Reader" in names:
        gone = ["Reader"]
    else:
        gone = draw.sample(names, draw.randrange(len(names))) if draw.random() < 0.2 else []
    name = draw.choice([*names, f"A{draw.randrange(1000)}"])
    text = READER if draw.random() < 0.1 else rule(name, draw, kind, "by k")
    for run in runs:
        if gone:
            run.remove(*gone)
        else:
            run.replace(text)


def grouped(run: Run) -> int:
    """How many rules of a run are in groups."""
    engine = run._engine
    if isinstance(engine, StepStream):
        return sum(each.group is not None for each in engine.rules)
    assert isinstance(engine, BatchEngine)
    return sum(isinstance(each, GroupMember) for each in engine.correlations.values())


def _compare(found: Sequence[Event], expected: Sequence[Event], seed: int, where: object) -> None:
    assert [as_text(each) for each in found] == [as_text(each) for each in expected], (seed, where)
