"""A start after a kill: the port is open at once and tells how far it is; little is read again."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.server.live import RULES, ServerProcess, reading

READINGS = 60_000
LONG = "[limits]\nsave_seconds = 3600\n"


def published(url: str, begin: int, count: int) -> None:
    with httpx.Client(base_url=url, timeout=60) as client:
        for first in range(begin, begin + count, 5_000):
            batch = [
                reading(n, f"s{n % 10}", 20.0 if n // 10 % 3 else 70.0, n / 10)
                for n in range(first, min(first + 5_000, begin + count))
            ]
            answer = client.post(
                "/v1/events",
                content=msgspec.json.encode(batch),
                headers={"Content-Type": "application/cloudevents-batch+json"},
            )
            assert answer.status_code == 200, answer.text


def put(url: str) -> None:
    headers = {"Content-Type": "text/plain"}
    httpx.put(f"{url}/v1/libraries/heat", content=RULES, headers=headers).raise_for_status()


def figure(url: str, name: str, **headers: str) -> float:
    text = httpx.get(f"{url}/metrics", headers=headers).text
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


def awaited(condition: Any, seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


class Watcher:
    """Asks a server that starts, from the moment that it tells its address."""

    def __init__(self) -> None:
        self.answers: dict[str, list[httpx.Response]] = {}

    def watch(self, server: ServerProcess) -> None:
        awaited(lambda: "http" in server.errors.read_text())
        url = next(
            each for each in server.errors.read_text().split() if each.startswith("http")
        ).rstrip("/")
        with httpx.Client(base_url=url, timeout=20) as client:
            while True:
                for path in ("/health", "/ready", "/v1/rules", "/"):
                    self.answers.setdefault(path, []).append(client.get(path))
                event = reading(1, "a", 20)
                self.answers.setdefault("post", []).append(client.post("/v1/events", json=event))
                if self.answers["/ready"][-1].status_code == 200:
                    return
                time.sleep(0.05)


def end(begun: ServerProcess) -> None:
    awaited(lambda: "http" in begun.errors.read_text())
    begun.process.send_signal(signal.SIGTERM)
    begun.process.wait(20)


def test_a_start_tells_how_far_it_is_and_then_answers(tmp_path: Path) -> None:
    """Costs what 60,000 events do that are taken, read again after a kill, and given up once."""
    server = ServerProcess(tmp_path, LONG)
    put(server.url)
    published(server.url, 0, READINGS)
    server.kill()

    # Ended while it reads again: in order, before it is through, and nothing is lost.
    with pytest.raises(AssertionError, match=r"does not start \(exit 0\)") as told:
        ServerProcess(tmp_path, LONG, on_begun=end)
    assert "Traceback" not in str(told.value)
    assert "everything is in force" not in str(told.value)

    watcher = Watcher()
    server = ServerProcess(tmp_path, LONG, on_begun=watcher.watch)
    health, ready = watcher.answers["/health"], watcher.answers["/ready"]
    waiting = [each for each in ready if each.status_code == 503]
    steps = [each.json()["progress"] for each in waiting if "progress" in each.json()]

    assert {each.status_code for each in health} == {200}
    assert health[0].json() == {"status": "starting"}
    assert [each["done"] for each in steps] == sorted(each["done"] for each in steps)
    assert any(0 < each["done"] < each["total"] for each in steps), steps
    assert steps[-1]["channel"] == "main"
    assert all(int(each.headers["Retry-After"]) >= 1 for each in waiting)
    for path in ("/v1/rules", "/", "post"):
        refused = [each for each in watcher.answers[path] if each.status_code == 503]
        assert refused[0].json()["type"] == "urn:ensue:problem:starting"
        assert refused[0].headers["X-Content-Type-Options"] == "nosniff"
        assert watcher.answers[path][-1].status_code == 200
    # What was refused meanwhile was not taken.
    taken = [each for each in watcher.answers["post"] if each.status_code == 200]
    assert [each.json()["accepted"] for each in taken] == [1] + [0] * (len(taken) - 1)
    assert figure(server.url, "ensue_recovery_entries") >= READINGS

    # What was read again is saved: the next kill finds nothing to read.
    server.kill()
    server = ServerProcess(tmp_path, LONG)
    assert figure(server.url, "ensue_recovery_entries") < 100
    assert server.stop() == 0


def test_a_server_that_is_idle_saves_what_it_has_done(tmp_path: Path) -> None:
    """Waits for a save, which comes a second after the work here, and by default thirty."""
    soon = '[limits]\nsave_seconds = 1.0\n[[channel]]\nname = "side"\n'
    server = ServerProcess(tmp_path, soon)
    for url in (server.url, f"{server.url}/channels/side"):
        put(url)
        published(url, 0, 3_000)
    awaited(lambda: figure(server.url, "ensue_unsaved_entries") == 0, 10)
    awaited(lambda: 'ensue_unsaved_entries{channel="side"} 0' in metrics(server.url), 10)
    outputs = httpx.get(f"{server.url}/v1/rules").json()[0]["outputs"]
    server.kill()

    server = ServerProcess(tmp_path, soon)
    assert figure(server.url, "ensue_recovery_entries") == 0
    assert httpx.get(f"{server.url}/v1/rules").json()[0]["outputs"] == outputs > 0
    assert server.stop() == 0


def metrics(url: str) -> str:
    return httpx.get(f"{url}/metrics").text
