"""Snapshots with a right digest and wrong contents: our own error, in time, or a run.

    python -m tests.engine.running.test_forged_snapshots ENGINE START COUNT

tries many more than the tests do.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from types import FrameType

import pytest

import ensue
from ensue.errors import EnsueError
from ensue.events.event import Event
from tests.engine.forged_snapshots import forged
from tests.engine.rules import event

from .test_snapshots import EVERYTHING, first_half, second_half

LIBRARY = f"""{EVERYTHING}
eventtype C {{ attribute string k; attribute long v; }};
Out correlation Kept (A a, B b) a ; b within 1 min by k having b.k = a.k keep all bind latest
    {{ case true: push new Out {{ v = a.v }}; }}
Out correlation Counted (A a, B b) a ; b by k having count(a) > 1
    {{ case true: push new Out {{ v = sum(a.v) }}; }}
C correlation Sent (C c, B b) c ; b within 1 h by k bind first {{ case true: push c; }}
Out correlation Quiet (A a, deadline 5 s d) a ; d by k {{ case true: push new Out {{ v = a.v }}; }}
Out correlation Absent (A a, B b) a ; timeout(7 s) by k unless b
    {{ case true: push new Out {{ v = a.v }}; }}
Out correlation More (A a, B b) l:(a{{3}}) | m:(a ; b) by k
    {{ case l: push new Out {{ v = a.v }}; case m: push new Out {{ v = 0 }}; }}
Out correlation Numbered (A a, A b) a ; b within 3 s by v {{ case true: push new Out {{}}; }}
"""

SECONDS = 20
"""So long a snapshot may take to be refused, or to go on and read a few events."""


class TakesTooLongError(Exception):
    pass


@contextmanager
def within(seconds: int) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise TakesTooLongError

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def snapshots(engine: str) -> list[bytes]:
    run = ensue.parse(LIBRARY).start(engine, lateness="1 s")
    for each in [*first_half(), event("C", "e0", 4.6, k="y", v=1)]:
        run.push(each)
    return [run.snapshot()]


def more_events() -> list[Event]:
    return [*second_half(), event("A", "e8", 21, k="x", v=1, t=None), event("B", "e9", 40, k="y")]


def outcome(library: ensue.Library, snapshot: bytes, engine: str | None = None) -> str:
    """What becomes of a snapshot: a word, or the traceback of an exception that is not ours."""
    try:
        with within(SECONDS):
            run = library.resume(snapshot, engine)
            for each in more_events():
                list(islice(run.push_iter(each), 1000))
            run.snapshot() if run._handout.is_empty else None
    except EnsueError:
        return "refused"
    except BaseException:
        return traceback.format_exc()
    return "taken"


@pytest.mark.parametrize("engine", ["step", "batch", "reference"])
def test_a_snapshot_that_was_changed_is_refused_or_goes_on(engine: str) -> None:
    library = ensue.parse(LIBRARY)
    found: Counter[str] = Counter()
    for whole in snapshots(engine):
        assert outcome(library, whole) == "taken"
        for seed in range(150):
            told = outcome(library, forged(whole, seed))
            assert told in ("refused", "taken"), (seed, told)
            found[told] += 1
    assert found["refused"] > 30


def test_a_changed_snapshot_moves_to_another_engine_or_is_refused() -> None:
    library = ensue.parse(LIBRARY)
    for engine, other in (("step", "batch"), ("batch", "step")):
        for whole in snapshots(engine):
            for seed in range(1000, 1100):
                told = outcome(library, forged(whole, seed), other)
                assert told in ("refused", "taken"), (seed, told)


def campaign(engine: str, start: int, count: int, other: str | None = None) -> None:
    library = ensue.parse(LIBRARY)
    found: Counter[str] = Counter()
    (whole,) = snapshots(engine)
    for seed in range(start, start + count):
        told = outcome(library, forged(whole, seed), other)
        where = told
        if told not in ("refused", "taken"):
            lines = told.strip().splitlines()
            where = " | ".join(
                [lines[-1], *[each.strip() for each in lines if "File" in each][-2:]]
            )
            if where not in found:
                print(seed, where, flush=True)
        found[where] += 1
    for where, times in found.most_common():
        print(times, where)


if __name__ == "__main__":
    campaign(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
