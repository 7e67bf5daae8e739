"""Clocks that are wrong, and gaps of hours: bounded transactions, and a server that answers."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import ensue
from ensue.server.station import private_run
from ensue.server.station.entries import EVENT, TIME, JournalEntry
from tests.server.live import Live, serving, settings

WATCH = """
eventtype Beat { attribute string sensor; };
eventtype Silent { attribute string sensor; };

Silent correlation Quiet (Beat b, deadline 10 s gone)
    gone
    by sensor
{
    case true: push new Silent { sensor = 'x' };
}
"""
HOURS = 6


def beat(number: int, sensor: str, second: float) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": str(number),
        "source": "test",
        "type": "Beat",
        "time": f"2026-01-01T{int(second) // 3600:02d}:{int(second) // 60 % 60:02d}"
        f":{int(second) % 60:02d}Z",
        "data": {"sensor": sensor},
    }


def silence(keys: int = 20) -> list[dict[str, Any]]:
    """A beat of every sensor, and hours later one more of the first."""
    begun = [beat(n, f"s{n}", 0) for n in range(keys)]
    return [*begun, beat(keys, "s0", HOURS * 3600)]


def identities(live: Live) -> list[str]:
    made: list[str] = []
    before: dict[str, Any] = {}
    while found := live.outputs(**before):
        made += [each["event"]["id"] for each in found]
        before = {"before": found[-1]["position"]}
    return sorted(made)


@pytest.mark.parametrize("lateness", ["0 s", "1 min"])
def test_a_gap_of_hours_is_written_in_many_transactions(tmp_path: Path, lateness: str) -> None:
    events = silence(8)
    run = ensue.parse(WATCH).start(lateness=lateness)
    made = [output.id for event in events for output in run.push(event)]
    # With a lateness the last event waits, and timers before it need not.
    expected = sorted([*made, *(output.id for output in run.advance(events[-1]["time"]))])

    with serving(settings(tmp_path, lateness=lateness, transaction_events=500)) as live:
        live.put(WATCH)
        append, sizes = live.station.journal.append, list[int]()

        def observed(entries: Any) -> None:
            sizes.append(len(entries))
            append(entries)

        live.station.journal.append = observed
        told = live.publish(events)

        assert told["unread"] == []
        assert identities(live) == expected
        # Timers are advanced by some thousand at a time.
        assert max(sizes) < 500 + 3 * 4096 < len(expected)

    with serving(settings(tmp_path, lateness=lateness)) as live:
        more = beat(1000, "s1", HOURS * 3600 + 60)
        live.publish([more])
        follows = [output.id for output in run.push(more)]

        assert identities(live) == sorted([*expected, *follows])


def test_a_clock_in_steps_is_recovered_from_the_journal(tmp_path: Path) -> None:
    events = [*silence(5), beat(5, "s3", HOURS * 3600 + 7), beat(6, "s1", HOURS * 3600 + 3600)]
    run = ensue.parse(WATCH).start()
    expected = sorted(output.id for event in events for output in run.push(event))
    with serving(settings(tmp_path)) as live:
        live.put(WATCH)
        live.publish(events[:-2])
        entries = live.station.journal.page(0, 2**62, 100_000)
        assert any(each.kind == TIME and each.library == "heat" for each in entries)

        live.station.line.call(live.station.recover).result(30)
        live.publish(events[-2:])

        assert identities(live) == expected


def test_a_server_that_stops_in_a_gap_goes_on_in_it(tmp_path: Path) -> None:
    events = silence(20)
    run = ensue.parse(WATCH).start()
    expected = sorted(output.id for event in events for output in run.push(event))
    stopping = threading.Event()
    steps = 0
    given = settings(tmp_path, transaction_events=200)
    with serving(given) as live, ThreadPoolExecutor(1) as pool:
        live.put(WATCH)
        live.publish(events[:-1])
        append = live.station.journal.append

        def observed(entries: Any) -> None:
            nonlocal steps
            append(entries)
            if any(each.kind == TIME for each in entries):
                steps += 1
                if steps == 3:
                    stopping.set()
                    time.sleep(0.3)

        live.station.journal.append = observed
        answer = pool.submit(httpx.post, f"{live.url}/v1/events", json=events[-1], timeout=60)
        assert stopping.wait(30)
        live.station.line.stop()
        assert answer.result(30).status_code == 429
        done = steps

    assert done < 10
    with serving(settings(tmp_path)) as live:
        live.publish(events[-1:])
        assert identities(live) == expected


def test_an_event_too_far_ahead_is_told_as_unread_and_moves_no_clock(tmp_path: Path) -> None:
    with serving(settings(tmp_path)) as live:
        live.put(WATCH)
        live.put(WATCH.replace("deadline 10 s", "deadline 10 min"), "slow")
        far = beat(1, "s0", 0) | {"time": "2027-01-01T00:00:00Z"}
        told = live.publish([beat(0, "s0", 0), far, beat(2, "s0", 5)])

        # 10 s allow a jump of 115 days, and 10 min one of 19 years.
        first = told["unread"][0]
        assert (first["index"], first["library"]) == (1, "heat")
        assert "too far ahead" in first["problems"][0]
        by_library = {each["library"] for each in live.outputs()}
        assert by_library == {"slow"}


def test_an_event_of_the_year_9999_is_refused_where_the_wall_clock_counts(tmp_path: Path) -> None:
    with serving(settings(tmp_path, clock="wall")) as live:
        live.put(WATCH)
        answer = live.client.post(
            "/v1/events", json=beat(1, "s", 0) | {"time": "9999-01-01T00:00:00Z"}
        )

        assert answer.status_code == 422
        assert "`ahead`" in answer.text


def test_a_private_library_hands_out_a_gap_in_parts() -> None:

    events = silence(3)
    run = ensue.parse(WATCH).start()
    expected = [output.id for event in events for output in run.push(event)]
    private = private_run.PrivateRun(ensue.parse(WATCH), 0, None, 1_000)
    ids: list[str] = []
    for number, event in enumerate(events, 1):
        found = private.read(JournalEntry(number, EVENT, msgspec.json.encode(event)))
        while found:
            assert len(found) <= private_run.OUTPUTS_AT_ONCE
            ids += [each.id for each in found]
            found = private.some()

    assert len(ids) == len(set(ids)) == len(expected)


def test_the_playground_ends_where_a_gap_puts_out_too_much(tmp_path: Path) -> None:
    with serving(settings(tmp_path)) as live:
        lines = "\n".join(f'{at} Beat {{"sensor": "s{n}"}}' for n in range(30) for at in (0,))
        lines += '\n86400 Beat {"sensor": "s0"}'
        answer = live.client.post("/v1/playground", json={"library": WATCH, "events": lines})

        assert answer.status_code == 200, answer.text
        assert any("ensue run" in p for each in answer.json()["problems"] for p in each["problems"])
