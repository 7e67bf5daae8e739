"""Subscribing by server-sent events and WebSocket: filters, libraries, resuming, slow readers."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.server.live import RULES, Live, reading, serving, settings


class Stream:
    """Server-sent events, read in a thread over a connection of its own."""

    def __init__(self, live: Live, headers: dict[str, str] | None = None, **given: str) -> None:
        self.given: list[dict[str, Any]] = []
        self.is_open = threading.Event()
        host = live.url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(host, timeout=60)
        self._connection.request("GET", f"/v1/events?{urlencode(given)}", headers=headers or {})
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.read()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        assert self.is_open.wait(10)

    def _read(self) -> None:
        current: dict[str, Any] = {}
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            for raw in self._answer:
                line = raw.decode().rstrip("\n")
                self.is_open.set()
                name, _, value = line.partition(": ")
                if name in ("event", "id", "data"):
                    current[name] = value
                elif not line and "data" in current:
                    current["data"] = json.loads(current["data"])
                    self.given.append(current)
                    current = {}

    def wait(self, count: int) -> list[dict[str, Any]]:
        limit = time.monotonic() + 15
        while len(self.given) < count and time.monotonic() < limit:
            time.sleep(0.005)
        assert len(self.given) >= count, self.given
        return self.given

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self._connection.close()

    @property
    def ids(self) -> list[str]:
        return [each["data"]["id"] for each in self.given]


@contextmanager
def listening(live: Live, **parameters: Any) -> Iterator[Stream]:
    stream = Stream(live, **parameters)
    try:
        yield stream
    finally:
        stream.close()


@pytest.fixture
def live() -> Iterator[Live]:
    with serving(settings()) as running:
        running.put()
        yield running


def rise(begin: int, sensor: str = "a") -> list[dict[str, Any]]:
    return [reading(begin, sensor, 20), reading(begin + 1, sensor, 70)]


def test_events_and_outputs_come_in_their_order(live: Live) -> None:
    with listening(live) as stream:
        live.publish(rise(1))
        given = stream.wait(3)

    assert [each["event"] for each in given[:3]] == ["event", "event", "output"]
    assert given[2]["data"]["causes"] == "e1,e2"
    assert [int(each["id"]) for each in given[:3]] == [1, 2, 3]


def test_a_filter_and_a_library_choose(live: Live) -> None:
    with (
        listening(live, filter="sensor = 'b' AND celsius > 60") as hot,
        listening(live, library="heat") as outputs,
        listening(live, correlation="Rise", filter="sensor = 'b'") as of_b,
    ):
        live.publish([*rise(1, "a"), *rise(3, "b")])
        assert [each["id"] for each in hot.wait(1)[:1]] == ["5"]
        assert [each["event"] for each in outputs.wait(2)[:2]] == ["output", "output"]
        assert of_b.wait(1)[0]["data"]["partitionkey"] == "b"
        assert len(of_b.given) == 1


def test_what_has_expired_is_neither_read_nor_given_and_is_counted(live: Live) -> None:
    """Of what is published, and of what rules set by `with`; in the journal it stays."""
    live.put(
        RULES.replace("high.sensor }", "high.sensor } with { expirytime = 2020-01-01T00:00:00Z }")
    )
    future = "2999-01-01T00:00:00Z"
    low, high = rise(1)
    with listening(live) as stream:
        gone = live.publish([reading(9, "a", 20) | {"expirytime": "2020-01-01T00:00:00Z"}])
        live.publish([low | {"expirytime": future}, high])
        given = stream.wait(2)
        live.publish([reading(3, "b", 20)])
        given = stream.wait(3)

    assert (gone["accepted"], gone["expired"]) == (0, 1)
    assert [each["data"]["id"] for each in given] == ["e1", "e2", "e3"]
    assert [each["event"]["expirytime"] for each in live.outputs()] == ["2020-01-01T00:00:00Z"]
    assert live.client.get("/v1/figures").json()["expired"] == 2
    with listening(live, after="0") as again:
        assert [each["data"]["id"] for each in again.wait(3)] == ["e1", "e2", "e3"]


def test_going_on_from_an_id_misses_nothing_and_doubles_nothing(live: Live) -> None:
    live.publish([reading(n, "a", 20 if n % 2 else 70) for n in range(1, 101)])
    with listening(live, headers={"Last-Event-ID": "40"}) as stream:
        live.publish([reading(n, "a", 20 if n % 2 else 70) for n in range(101, 201)])
        last = live.client.get("/v1/figures").json()["position"]
        stream.wait(last - 40)

    assert [int(each["id"]) for each in stream.given[: last - 40]] == list(range(41, last + 1))


def test_ids_outlive_the_server(tmp_path: Path) -> None:
    with serving(settings(tmp_path / "data")) as live:
        live.put()
        live.publish(rise(1))
    with serving(settings(tmp_path / "data")) as live, listening(live, after="1") as stream:
        live.publish(rise(3))
        stream.wait(5)

    assert [int(each["id"]) for each in stream.given[:5]] == [2, 3, 4, 5, 6]


def test_a_temporal_filter_is_asked_before_the_event_is_stored(live: Live) -> None:
    text = "celsius > 60 AND start AFTER(3 s) (celsius < 30)"
    with listening(live, filter=text, kinds="event") as stream:
        live.publish([reading(1, "a", 70), reading(2, "a", 20), reading(4, "a", 70)])
        live.publish([reading(9, "a", 70)])
        live.publish([reading(10, "a", 20), reading(11, "a", 70)])
        stream.wait(2)

    assert stream.ids[:2] == ["e4", "e11"]


def test_a_library_of_ones_own_runs_for_the_subscriber(live: Live) -> None:
    text = RULES.replace("> 60", "> 40").replace("Rise", "Mine")
    live.publish([reading(1, "a", 20)])
    with listening(live, rules=text, after="0") as stream:
        live.publish([reading(2, "a", 50), reading(3, "a", 20), reading(4, "a", 50)])
        first, second = stream.wait(2)[:2]
    assert (first["id"], second["id"]) == ("0.2.1", "0.4.1")
    assert first["data"]["causes"] == "e1,e2"

    with listening(live, rules=text, after=first["id"]) as stream:
        assert stream.wait(1)[0]["id"] == second["id"]


def test_a_websocket_gives_the_same(live: Live) -> None:
    url = live.url.replace("http", "ws") + "/v1/events/socket"
    with connect(f"{url}?kinds=output", subprotocols=[Subprotocol("ensue.v1")]) as opened:
        live.publish(rise(1))
        given = json.loads(opened.recv(timeout=10))
    assert (given["id"], given["kind"], given["library"]) == ("3", "output", "heat")
    assert given["event"]["type"] == "Hot"

    with connect(f"{url}?after=1") as opened:
        assert [json.loads(opened.recv(timeout=10))["id"] for _ in range(2)] == ["2", "3"]


def test_a_websocket_is_told_what_is_wrong(live: Live) -> None:
    url = live.url.replace("http", "ws") + "/v1/events/socket"
    with connect(f"{url}?filter=celsius%20%3E") as opened:
        problem = json.loads(opened.recv(timeout=10))
    assert problem["status"] == 422
    assert problem["diagnostics"]


@pytest.mark.parametrize(
    ("parameters", "status", "words"),
    [
        ({"filter": "celsius >"}, 422, "diagnostics"),
        ({"library": "none"}, 404, "there is no library `none`"),
        ({"kinds": "outputs"}, 400, "there is no kind `outputs`"),
        ({"after": "x"}, 400, "is no id"),
        ({"after": "999"}, 409, "another server"),
        ({"fliter": "x"}, 400, "did you mean `filter`"),
        ({"rules": "eventtype"}, 422, "diagnostics"),
    ],
)
def test_what_cannot_be_subscribed_is_told(
    live: Live, parameters: dict[str, str], status: int, words: str
) -> None:
    answer = live.client.get("/v1/events", params=parameters)

    assert answer.status_code == status
    assert words in answer.text


def test_one_who_reads_slowly_loses_nothing_and_holds_no_memory() -> None:
    with serving(settings(subscriber_waiting=50)) as live:
        url = live.url.replace("http", "ws") + "/v1/events/socket"
        with connect(url, max_queue=1, compression=None) as opened:
            for begin in range(0, 20_000, 2_000):
                live.publish([reading(n, "a" * 200, 20) for n in range(begin, begin + 2_000)])
            (subscriber,) = live.station.feed.subscribers.values()
            assert len(subscriber._queue) <= 50
            ids = [int(json.loads(opened.recv(timeout=20))["id"]) for _ in range(20_000)]
    assert ids == list(range(1, 20_001))


def test_a_subscriber_that_leaves_is_forgotten(live: Live) -> None:
    with listening(live, filter="celsius > 1 AND start AFTER(1 s) (celsius > 1)"):
        assert len(live.station.feed.subscribers) == 1
        assert live.station.asks
    limit = time.monotonic() + 10
    while live.station.feed.subscribers and time.monotonic() < limit:
        time.sleep(0.02)
    assert not live.station.feed.subscribers
    assert not live.station.line.call(lambda: live.station.asks).result(10)


def test_asking_for_the_head_of_a_stream_ends(live: Live) -> None:
    assert live.client.head("/v1/events").headers["content-type"] == "text/event-stream"
