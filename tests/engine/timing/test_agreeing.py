"""Streams whose events disagree on the time: the clock goes where most events are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.engine.timing import agreeing
from ensue.engine.timing.agreeing import (
    QUORUM,
    Dissent,
    TimeRun,
    TimeRuns,
    clock_spans,
    largest_span,
)
from ensue.errors import EventError

RULES = """
eventtype Beat { attribute string host; };
eventtype Silent {};
Silent correlation Gone (Beat b, deadline 10 s gone) gone by host { case true: push new Silent {}; }
Silent correlation Pair (Beat b) b{2} by host { case true: push new Silent {}; }
"""
NOW = datetime(2026, 3, 1, tzinfo=UTC)
OLD = datetime(1970, 1, 1, tzinfo=UTC)
FAR = datetime(9999, 1, 1, tzinfo=UTC)
ENGINES = ["reference", "step", "batch"]


def beat(number: int, time: datetime, host: str = "h") -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": f"e{number}",
        "source": "test",
        "type": "Beat",
        "time": time.isoformat().replace("+00:00", "Z"),
        "data": {"host": host},
    }


def from_(begin: datetime, count: int, first: int = 0) -> list[dict[str, Any]]:
    return [beat(first + n, begin + timedelta(seconds=n)) for n in range(count)]


def pushed(run: ensue.Run, events: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The ids of outputs, and of refused events."""
    outputs: list[str] = []
    refused: list[str] = []
    for event in events:
        try:
            outputs += [each.id for each in run.push(event)]
        except EventError:
            refused.append(event["id"])
    return outputs, refused


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lateness", ["0 s", "5 s"])
@pytest.mark.parametrize("wrong", [1, 3, QUORUM + 50])
def test_a_stream_that_begins_in_1970_goes_on_where_most_events_are(
    engine: str, lateness: str, wrong: int
) -> None:
    begun = from_(OLD, wrong)
    events = from_(NOW, 400, first=1000)
    run = ensue.parse(RULES).start(engine=engine, lateness=lateness)
    _, refused = pushed(run, [*begun, *events])

    lost = min(wrong, QUORUM - 1)
    assert refused == [each["id"] for each in events[:lost]]
    assert run.counts.begun_anew == 1
    assert run.counts.events == wrong + 400 - lost

    fresh = ensue.parse(RULES).start(engine=engine, lateness=lateness)
    pushed(fresh, events[lost:])
    more = from_(NOW + timedelta(minutes=10), 5, first=5000)
    assert pushed(run, more) == pushed(fresh, more)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_comes_before_a_clock_begins_anew_is_put_out_once(engine: str) -> None:
    run = ensue.parse(RULES).start(engine=engine, lateness="1 min")
    begun = [beat(1, OLD), beat(2, OLD + timedelta(seconds=5))]
    outputs, refused = pushed(run, [*begun, *from_(NOW, 3, first=10)])

    assert len(outputs) == 1  # the pair of 1970, which waited to be put in order
    assert refused == ["e10", "e11"]
    assert len([each for each in run.finish() if each.extensions["correlation"] == "Pair"]) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_events_far_in_the_future_move_no_clock_however_many_they_are(engine: str) -> None:
    run = ensue.parse(RULES).start(engine=engine)
    far = [beat(100 + n, FAR + timedelta(seconds=n)) for n in range(3 * QUORUM)]
    _, refused = pushed(run, [beat(0, NOW), *far, beat(1, NOW + timedelta(seconds=1))])

    assert len(refused) == len(far)
    assert run.counts.begun_anew == 0
    assert not run.late


def test_a_sensor_that_is_ahead_moves_no_clock_among_others_that_are_right() -> None:
    run = ensue.parse(RULES).start()
    ahead = NOW + timedelta(days=200)
    assert ahead.timestamp() * 1e6 < agreeing.end_of_tomorrow(), "it could be true"
    mixed: list[dict[str, Any]] = []
    for n in range(2000):
        mixed.append(beat(3 * n, NOW + timedelta(seconds=n)))
        mixed.append(beat(3 * n + 1, NOW + timedelta(seconds=n)))
        mixed.append(beat(3 * n + 2, ahead + timedelta(seconds=n)))
    _, refused = pushed(run, mixed)

    assert len(refused) == 2000
    assert run.counts.begun_anew == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cut", [1, 3, 5, 6])
def test_votes_and_beginnings_outlive_a_snapshot(engine: str, cut: int) -> None:
    library = ensue.parse(RULES)
    events = [*from_(OLD, 3), *from_(NOW, 40, first=100)]
    whole = library.start(engine=engine)
    expected = pushed(whole, events)

    run = library.start(engine=engine)
    first = pushed(run, events[:cut])
    run = library.resume(run.snapshot())
    second = pushed(run, events[cut:])

    assert (first[0] + second[0], first[1] + second[1]) == expected
    assert (run.counts.events, run.counts.begun_anew) == (whole.counts.events, 1)


def test_an_unbounded_clock_is_asked_nothing() -> None:
    run = ensue.parse("eventtype A {}; A correlation R (A a) a { case true: push a; }").start(
        max_jump="none"
    )
    for year in (1970, 2026, 9999):
        run.push(beat(year, datetime(year, 1, 1, tzinfo=UTC)) | {"type": "A"})

    assert run.counts.events == 3


def test_a_vote_against_a_vote_takes_it_back() -> None:
    dissent = Dissent()
    far, farther = TimeRun(1000, 1000), TimeRun(5000, 5000)

    assert not dissent.vote(far, 10, read=50)
    assert not dissent.vote(farther, 10, read=50)
    assert dissent.votes == 0
    assert not dissent.vote(farther, 10, read=50)
    assert (dissent.votes, dissent.latest) == (1, 5000)


def test_of_a_bounded_input_the_span_with_the_most_events_is_read() -> None:
    assert largest_span([0, 1, 100, 101, 102, 900], 10) == (2, 5)
    assert largest_span([0, 1, 100, 101], 10) == (0, 2)
    assert largest_span([], 10) == (0, 0)


def test_a_micro_batch_is_cut_into_the_spans_that_are_read() -> None:
    runs = TimeRuns(10)
    for low, high, events in ((0, 5, 2), (100, 120, 50), (300, 300, 1)):
        runs.add(low, high, events)
    found, taken = clock_spans(runs, None, 10, 0, Dissent())

    assert [(each.high, each.is_anew) for each in found] == [(5, False), (120, True)]
    assert taken == 52


@pytest.mark.parametrize("engine", ["auto", "reference", "step", "batch"])
@pytest.mark.parametrize("form", ["jsonl", "unordered"])
def test_files_are_read_where_most_events_are(tmp_path: Path, engine: str, form: str) -> None:
    import msgspec

    events = [*from_(OLD, 3), *from_(NOW, 50, first=100), beat(999, FAR)]
    if form == "unordered":
        events.insert(0, events.pop(10))
    (tmp_path / "rules.cor").write_text(RULES)
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, events)))
    command = [sys.executable, "-m", "ensue", "run", "rules.cor", "-e", "events.jsonl"]
    command += ["--engine", engine, "--dead-letter", "dead.jsonl", "--verbose"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode in (0, 1), done.stderr
    assert "50 events read" in done.stderr, done.stderr
    dead = (tmp_path / "dead.jsonl").read_text().splitlines()
    assert len(dead) == 4
    assert done.stderr.count("too far behind") == 3
    assert done.stdout.count('"Pair"') == 25
