"""A snapshot that was written before is read, as long as the form of snapshots is the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import ensue
from ensue.engine.batch import BatchEngine
from ensue.engine.batch.snapshots import VERSION
from ensue.errors import SnapshotError
from ensue.events.event import Event

SAVED = Path(__file__).parent
LIBRARY = """
eventtype A { attribute short k; attribute long v; };
eventtype B { attribute short k; attribute long v; };
eventtype Out { attribute long first; attribute long last; attribute timestamp at; };
Out correlation Chain (A a, B b from outside, Window) a ; b ; a by k
{ case true: push new Out { first = b.v, last = a.v }; }
B correlation Window (A a, B b) l:(a ; b) | m:(b ; b) within 4 s by k
{ case l: push new B { k = a.k, v = b.v }; case m: push b; }
Out correlation Changing (A a, B b from outside, Window) l:(a) + m:(b) within 5 s by k
{ case m: revive(l); case l: push new Out { first = a.v, last = b.v }; abort(l); }
Out correlation Watched (A a, every 2 s t, deadline 5 s d) a + t || a ; d by k
{ case true: push new Out { first = a.v, at = t.time, last = 1 }; }
Out ecl Silent (A a, B b from outside, Window) by k
{ repeat { notify { sequential { a, do { timeout(3 s) } unless { b } } } } }
Out correlation Remembering (A a, B b from outside, Window) a ; b ; b within 9 s by k bind first
{ case true: push new Out { first = b.v, last = a.v }; }
"""
UNTIL = 200


def events() -> list[Event]:
    """Two types and three keys in an order that repeats late."""
    made = []
    for number in range(80):
        kind = "AB"[(number * 7 + number // 5) % 3 == 0]
        data = {"k": (number * 5 + number // 7) % 3, "v": number}
        made.append(Event(str(number), "s", kind, (number + number % 4) // 2 * 1_000_000, data))
    return sorted(made, key=lambda event: event.time)


def outputs_from(engine: BatchEngine, given: Sequence[Event]) -> list[Event]:
    return [*engine.read_all(given), *engine.advance(UNTIL * 1_000_000)]


def test_a_saved_snapshot_goes_on_as_if_nothing_had_happened() -> None:
    """It was taken after half of the events; the rest gives what it would have given."""
    library = ensue.parse(LIBRARY).checked
    half = len(events()) // 2
    resumed = BatchEngine(library)
    resumed.restore((SAVED / f"version-{VERSION}.snapshot").read_bytes())
    whole = BatchEngine(library)
    whole.read_all(events()[:half])

    expected = outputs_from(whole, events()[half:])
    assert outputs_from(resumed, events()[half:]) == expected
    assert {output.extensions["correlation"] for output in expected} == {
        each.name for each in library.correlations
    }


def test_what_is_written_now_is_of_the_latest_version() -> None:
    """A change of the form needs another number, and a sample of it here."""
    state = msgspec.msgpack.decode(BatchEngine(ensue.parse(LIBRARY).checked).snapshot())

    assert state["version"] == VERSION


def test_a_snapshot_of_another_version_is_refused_with_both_numbers() -> None:
    engine = BatchEngine(ensue.parse(LIBRARY).checked)
    state = msgspec.msgpack.decode(engine.snapshot())
    older = msgspec.msgpack.encode({**state, "version": VERSION - 1})

    with pytest.raises(SnapshotError, match=f"version {VERSION - 1}.* reads {VERSION}"):
        engine.restore(older)
