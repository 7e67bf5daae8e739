"""Publishing over HTTP: every mode of CloudEvents, refusals with reasons, and back-pressure."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ensue.events.cloudevents import event_of
from tests.server.live import RULES, Live, reading, serving, settings


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with serving(settings()) as running:
        running.put()
        yield running


def send(live: Live, kind: str, content: Any, **headers: str) -> Any:
    return live.client.post(
        "/v1/events", content=content, headers={"Content-Type": kind, **headers}
    )


def test_a_structured_event_is_kept_and_read(live: Live) -> None:
    answer = send(
        live,
        "application/cloudevents+json; charset=utf-8",
        '{"specversion":"1.0","id":"s1","source":"a","type":"Reading","time":"2026-01-01T00:00:00Z",'
        '"data":{"sensor":"x","celsius":20.0}}',
    )

    assert answer.status_code == 200
    assert answer.json()["accepted"] == 1
    found = live.client.get("/v1/history", params={"filter": "sensor = 'x'"}).json()
    assert [each["id"] for each in found["events"]] == ["s1"]


def test_a_binary_event_has_its_attributes_in_headers(live: Live) -> None:
    answer = send(
        live,
        "application/json",
        '{"sensor": "binary", "celsius": 21.5}',
        **{
            "ce-specversion": "1.0",
            "ce-id": "b1",
            "ce-source": "a%20b",
            "ce-type": "Reading",
            "ce-time": "2026-01-01T00:00:01Z",
            "ce-region": "north",
        },
    )

    assert answer.json()["accepted"] == 1
    found = live.client.get("/v1/history", params={"filter": "region = 'north'"}).json()["events"]
    assert found[0]["source"] == "a b"
    assert found[0]["data"] == {"sensor": "binary", "celsius": 21.5}


def test_binary_data_that_is_no_json_is_kept_as_it_is(live: Live) -> None:
    headers = {"ce-id": "b2", "ce-source": "a", "ce-type": "Image", "ce-specversion": "1.0"}
    time = {"ce-time": "2026-01-01T00:00:01Z"}
    answer = send(live, "image/png", b"\x89PNG\r\n", **headers, **time)

    assert answer.json()["accepted"] == 1
    found = live.client.get("/v1/history", params={"filter": "type = 'Image'"}).json()["events"]
    assert found[0]["data_base64"] == "iVBORw0K"


def test_a_batch_and_lines_are_taken(live: Live) -> None:
    batch = live.publish([reading(2, "y", 20), reading(3, "y", 70)])
    assert batch["accepted"] == 2

    event = '{"id":"n1","source":"a","type":"T","time":"2026-01-01T00:00:04Z"}'
    lines = send(live, "application/x-ndjson", event + '\n\n{"id":"n2"}\n')
    assert lines.json()["accepted"] == 1
    assert lines.json()["rejected"][0]["index"] == 1


def test_outputs_follow_before_the_answer(live: Live) -> None:
    live.publish([reading(10, "quick", 20), reading(11, "quick", 70)])

    (output,) = live.outputs(key="quick")
    assert output["event"]["causes"] == "e10,e11"
    assert output["event"]["type"] == "Hot"


def test_an_event_that_is_sent_again_is_not_read_again(live: Live) -> None:
    events = [reading(20, "twice", 20), reading(21, "twice", 70)]
    live.publish(events)
    again = live.publish(events)

    assert (again["accepted"], again["duplicates"]) == (0, 2)
    assert len(live.outputs(key="twice")) == 1


def test_an_event_without_a_time_gets_that_of_its_arrival() -> None:
    with serving(settings()) as live:
        live.client.post("/v1/events", json={"id": "1", "source": "a", "type": "T"})
        found = live.client.get("/v1/history").json()["events"]
    assert found[0]["time"].startswith("20")


@pytest.mark.parametrize(
    ("kind", "content", "status", "words"),
    [
        ("application/json", "{", 400, "ends too early"),
        ("application/json", "[1]", 422, "a JSON object"),
        ("application/json", '{"id":"","source":"a","type":"T"}', 422, "`id` must be"),
        ("application/cloudevents-batch+json", "{}", 400, "a JSON array"),
        ("application/cloudevents+json", "[]", 400, "one event"),
        ("text/plain", "{}", 415, "application/cloudevents+json"),
        ("application/json", '{"id":"1","source":"a","type":"T","time":"now"}', 422, "RFC 3339"),
    ],
)
def test_what_cannot_be_taken_is_told(
    live: Live, kind: str, content: str, status: int, words: str
) -> None:
    answer = send(live, kind, content)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.text


def test_an_event_that_a_library_cannot_read_is_kept_and_told(live: Live) -> None:
    bad = reading(30, "z", 20)
    bad["data"]["celsius"] = "warm"
    answer = live.publish([reading(31, "z", 20), bad])

    assert answer["accepted"] == 2
    (unread,) = answer["unread"]
    assert (unread["index"], unread["library"]) == (1, "heat")
    library = live.client.get("/v1/libraries/heat").json()
    assert library["refused"] >= 1
    assert library["refusals"][-1]["id"] == "e30"


def test_a_time_far_ahead_of_the_clock_is_refused() -> None:
    with serving(settings(clock="wall")) as live:
        event = {"id": "1", "source": "a", "type": "T", "time": "2999-01-01T00:00:00Z"}
        answer = live.client.post("/v1/events", json=event)
    assert answer.status_code == 422
    assert "limit `ahead`" in answer.text


def test_sizes_have_limits() -> None:
    with serving(settings(body_bytes=2000, event_bytes=500, batch_events=3)) as live:
        large = live.client.post("/v1/events", content=b"x" * 3000)
        assert (large.status_code, large.json()["limit"]) == (413, "body_bytes")

        def chunks() -> Iterator[bytes]:
            yield from [b"x" * 500] * 10

        endless = live.client.post(
            "/v1/events", content=chunks(), headers={"Content-Type": "application/json"}
        )
        assert (endless.status_code, endless.json()["limit"]) == (413, "body_bytes")
        many = live.client.post("/v1/events", json=[{"id": "1", "source": "a", "type": "T"}] * 4)
        assert (many.status_code, many.json()["limit"]) == (413, "batch_events")
        event = {"id": "1", "source": "a", "type": "T", "data": "y" * 600}
        wide = live.client.post("/v1/events", json=event)
        assert wide.status_code == 422
        assert "event_bytes" in wide.text


def test_a_full_queue_answers_429_with_a_time_to_come_again() -> None:
    with serving(settings(waiting_events=100)) as live:
        live.put(RULES)
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            let_go.wait(20)

        live.station.line.call(hold)
        assert held.wait(10)
        statuses: list[int] = []
        waiting = threading.Thread(
            target=lambda: live.publish([reading(n, "a", 20) for n in range(90)])
        )
        waiting.start()
        while live.station.line.waiting_events < 90:
            pass
        answer = live.client.post(
            "/v1/events", json=[reading(n, "b", 20, 100 + n) for n in range(100, 150)]
        )
        statuses.append(answer.status_code)
        let_go.set()
        waiting.join(20)

        assert statuses == [429]
        assert int(answer.headers["retry-after"]) >= 1
        assert "waiting_events" in answer.text
        assert live.client.get("/v1/figures").json()["events"] == 90


def test_bodies_that_are_still_sent_are_bounded_together() -> None:
    with serving(settings(waiting_bytes=100_000)) as live:
        host, port = live.url.removeprefix("http://").split(":")
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 90000\r\n"
            "Content-Type: application/json\r\n\r\n"
        ).encode()
        half_sent = [socket.create_connection((host, int(port))) for _ in range(2)]
        for each in half_sent:
            each.sendall(head + b"[" + b" " * 45_000)
        time.sleep(0.3)
        events = [{**reading(n, "a", 20.0), "subject": "x" * 1_000} for n in range(20)]
        refused = live.client.post("/v1/events", json=events)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert "`waiting_bytes`" in refused.json()["detail"]
        for each in half_sent:
            each.close()
        time.sleep(0.3)
        # What was held is free again once its senders have left.
        assert live.client.post("/v1/events", json=events).status_code == 200


def test_a_sender_that_leaves_before_the_answer_disturbs_nobody() -> None:
    with serving(settings()) as live:
        live.put(RULES)
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            let_go.wait(20)

        live.station.line.call(hold)
        assert held.wait(10)
        leaving = asyncio.run_coroutine_threadsafe(
            live.station.publish([publication(reading(1, "a", 20))], 100), live.loop
        )
        staying = asyncio.run_coroutine_threadsafe(
            live.station.publish([publication(reading(2, "a", 70))], 100), live.loop
        )
        while live.station.line.waiting_events < 2:
            pass
        leaving.cancel()
        let_go.set()

        assert staying.result(10).last == 3
        assert live.station.line.failure is None
        assert len(live.outputs()) == 1


def publication(members: dict[str, Any]) -> Any:
    return event_of(dict(members)), msgspec.json.encode(members)
