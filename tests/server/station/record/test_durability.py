"""Killed in the middle of load: what was acknowledged is there, and outputs come once."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import ensue
from ensue.history import History
from ensue.server.station.entries import OUTPUT
from ensue.server.station.record.journal import ServerJournal
from tests.server.live import RULES, ServerProcess, reading, serving, settings

TIMED = """
eventtype Reading { attribute string sensor; attribute double celsius; };
eventtype Silent { attribute string sensor; };

Silent correlation Quiet (Reading r)
    r ; timeout(5 s)
    unless r
    by sensor
{
    case true: push new Silent { sensor = r.sensor };
}
"""


TWICE = """
eventtype Reading { attribute string sensor; attribute double celsius; };
Reading correlation Twice (Reading r) r{2} { case true: push r; }
"""


def events(begin: int, count: int) -> list[dict[str, Any]]:
    """Readings of ten sensors that rise and fall, a tenth of a second apart."""
    return [
        reading(n, f"s{n % 10}", 20.0 if n // 10 % 3 else 70.0, n / 10)
        for n in range(begin, begin + count)
    ]


def expected(sent: list[dict[str, Any]], *texts: str) -> list[str]:
    return sorted(
        f"{output.extensions['correlation']}/{output.id}"
        for text in texts
        for output in ensue.parse(text).run(sent)
    )


def got(outputs: list[dict[str, Any]]) -> list[str]:
    return sorted(f"{each['correlation']}/{each['event']['id']}" for each in outputs)


class Load(threading.Thread):
    """Publishes batches until it fails; remembers what was acknowledged."""

    def __init__(self, url: str, begin: int, size: int) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.next = begin
        self._size = size
        self.batches = 0

    def run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=10) as client:
            while True:
                batch = events(self.next, self._size)
                try:
                    answer = client.post("/v1/events", json=batch)
                except httpx.HTTPError:
                    return
                assert answer.status_code == 200, answer.text
                self.next += self._size
                self.batches += 1


def put(url: str, name: str, text: str) -> None:
    answer = httpx.put(
        f"{url}/v1/libraries/{name}", content=text, headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code in (200, 201), answer.text


MANY = "[limits]\nanswers = 1000000\n"


@pytest.mark.parametrize("batch", [7, 500])
def test_a_server_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, batch: int) -> None:
    """A server is killed and started again several times, as a process."""
    server = ServerProcess(tmp_path, MANY)
    put(server.url, "heat", RULES)
    put(server.url, "quiet", TIMED)
    acknowledged = 0
    received: list[str] = []
    for _ in range(3):
        load = Load(server.url, acknowledged, batch)
        load.start()
        while load.batches < 4:
            time.sleep(0.01)
        time.sleep(0.15)
        server.kill()
        load.join(20)
        server = ServerProcess(tmp_path, MANY)
        # The batch that was on its way may be in the journal, all of it, or not at all.
        position = httpx.get(f"{server.url}/v1/history", params={"limit": 500_000}).json()["events"]
        assert len(position) in (load.next, load.next + batch)
        # Sent again, as a sender does that got no answer, it is read once.
        again = httpx.post(f"{server.url}/v1/events", json=events(load.next, batch)).json()
        assert again["accepted"] + again["duplicates"] == batch
        acknowledged = load.next + batch
    outputs = httpx.get(f"{server.url}/v1/outputs", params={"limit": 500_000}).json()["outputs"]
    sent = events(0, acknowledged)
    assert got(outputs) == expected(sent, RULES, TIMED)
    counts = {each["rule"]: each["outputs"] for each in httpx.get(f"{server.url}/v1/rules").json()}
    assert sum(counts.values()) == len(outputs)
    received += [each["event"]["id"] for each in outputs]
    assert len(set(received)) == len(received)
    assert server.stop() == 0
    assert "Traceback" not in server.errors.read_text()


def test_events_without_a_time_that_are_sent_again_count_once(tmp_path: Path) -> None:
    """Half of the batch has times; it comes again at once, in parts, and after a kill."""
    batch = [reading(n, "a", 20.0 if n % 2 else 70.0) for n in range(1, 601)]
    for each in batch[300:]:
        del each["time"]
    server = ServerProcess(tmp_path)
    put(server.url, "twice", TWICE)

    def sent(events: list[dict[str, Any]]) -> tuple[int, int]:
        answer = httpx.post(f"{server.url}/v1/events", json=events).json()
        return answer["accepted"], answer["duplicates"]

    assert sent(batch) == (600, 0)
    assert sent(batch) == (0, 600)
    assert sent(batch[250:350]) == (0, 100)
    server.kill()
    server = ServerProcess(tmp_path)
    assert sent(batch[299:]) == (0, 301)
    assert sent([*batch, batch[0] | {"id": "other"}]) == (1, 600)
    outputs = httpx.get(f"{server.url}/v1/outputs", params={"limit": 1_000}).json()["outputs"]
    assert len(outputs) == 300
    # In one batch, too: the second of an id is known by the first.
    again = {key: value for key, value in reading(700, "a", 20).items() if key != "time"}
    assert sent([again, again]) == (1, 1)
    assert server.stop() == 0


def test_a_stop_in_order_saves_states_so_that_nothing_is_read_again(tmp_path: Path) -> None:
    with serving(settings(tmp_path / "data")) as live:
        live.put()
        live.publish(events(0, 35))
        before = got(live.outputs())
    with serving(settings(tmp_path / "data")) as live:
        assert live.station.hosted["heat"].saved_seq == live.station.seq
        assert got(live.outputs()) == before
        live.publish(events(35, 65))
        assert got(live.outputs()) == expected(events(0, 100), RULES)


def test_what_asks_the_history_goes_on_exactly_after_a_kill(tmp_path: Path) -> None:
    asking = """
    eventtype Reading { attribute string sensor; attribute double celsius; };
    eventtype Hot { attribute string sensor; };
    Hot correlation After (Reading r where celsius > 60 AND start AFTER(2 s) (celsius < 30)) r{2} {
        case true: push new Hot { sensor = r.sensor };
    }
    """
    sent = events(0, 120)
    with History.open("memory:") as history:
        library = ensue.parse(asking)
        right = sorted(f"After/{each.id}" for each in library.run(sent, history=history))
    server = ServerProcess(tmp_path)
    put(server.url, "asking", asking)
    for begin in range(0, 120, 15):
        answer = httpx.post(f"{server.url}/v1/events", json=sent[begin : begin + 15])
        assert answer.json()["accepted"] == 15
        if begin in (30, 75):
            server.kill()
            server = ServerProcess(tmp_path)
    outputs = httpx.get(f"{server.url}/v1/outputs").json()["outputs"]
    server.stop()

    assert right
    assert got(outputs) == right


def test_a_failing_disk_is_told_and_the_runs_are_put_back(tmp_path: Path) -> None:
    with serving(settings(tmp_path / "data")) as live:
        live.put()
        live.publish(events(0, 30))
        append = live.station.journal.append
        live.station.journal.append = broken
        answer = live.client.post("/v1/events", json=events(30, 30))
        assert answer.status_code == 503
        assert "nothing of this was acknowledged" in answer.text
        live.station.journal.append = append
        again = live.publish(events(30, 70))
        assert again["accepted"] == 70
        assert got(live.outputs()) == expected(events(0, 100), RULES)


def broken(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_the_journal_is_trimmed_and_keeps_what_is_needed(tmp_path: Path) -> None:
    with serving(settings(tmp_path / "data", journal_events=200)) as live:
        live.put()
        for begin in range(0, 1000, 100):
            live.publish(events(begin, 100))
        live.station.indexer.catch_up(live.station.seq, 20)
        live.loop.call_soon_threadsafe(lambda: None)
        live.station.line.call(live.station.save_states).result(20)
        live.station.line.call(live.station._trim).result(20)
        assert live.station.journal.first > 500
        late = live.client.get("/v1/events", params={"after": "10"})
        assert late.status_code == 410
        found = live.client.get("/v1/history", params={"limit": 10_000}).json()["events"]
        assert len(found) == 1000
    with serving(settings(tmp_path / "data", journal_events=200)) as live:
        live.publish(events(1000, 100))
        outputs = live.station.journal.outputs(limit=10_000)
        wanted = {each.split("/")[1] for each in expected(events(0, 1100), RULES)}
        assert {each.id for each in outputs} <= wanted
        assert live.client.get("/v1/rules").json()[0]["outputs"] == len(wanted)


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        serving(settings(tmp_path)),
        pytest.raises(ensue.UsageError, match="another server"),
        serving(settings(tmp_path)),
    ):
        pass


def test_the_journal_numbers_entries_once(tmp_path: Path) -> None:
    with serving(settings(tmp_path / "data")) as live:
        live.put()
        live.publish(events(0, 50))
    journal = ServerJournal(tmp_path / "data" / "journal.db")
    entries = journal.page(0, 10_000)
    assert [each.seq for each in entries] == list(range(1, len(entries) + 1))
    assert sum(each.kind == OUTPUT for each in entries) == len(expected(events(0, 50), RULES))
    journal.close()
