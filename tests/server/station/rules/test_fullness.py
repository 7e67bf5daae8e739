"""Bounds on the keys that rules hold: who sends ever new keys is refused, and nobody else."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from ensue.server.station.entries import UNREAD
from ensue.server.station.record.journal import ServerJournal
from tests.server.live import RULES, ServerProcess, serving, settings

WINDOWED = RULES.replace("low ; high\n", "low ; high within 10 s\n")
CHAINED = (
    RULES
    + """
eventtype Fire { attribute string sensor; };

Fire correlation Twice (Hot one, Hot two) one ; two by sensor
{ case true: push new Fire { sensor = two.sensor }; }
"""
)


def reading(number: int, sensor: str, celsius: float = 20.0, second: int = 0) -> dict[str, Any]:
    return {
        "id": f"e{number}", "source": "lab", "type": "Reading",
        "time": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z",
        "data": {"sensor": sensor, "celsius": celsius},
    }  # fmt: skip


def put(client: httpx.Client, text: str = RULES) -> None:
    client.put(
        "/v1/libraries/heat", content=text, headers={"Content-Type": "text/plain"}
    ).raise_for_status()


def keys_of(client: httpx.Client) -> int:
    """Of `Rise`, as the metrics tell."""
    return metric(client, 'ensue_rule_keys{channel="main",library="heat",rule="Rise"}')


def metric(client: httpx.Client, name: str) -> int:
    lines = client.get("/metrics").text.splitlines()
    return next(int(each.split()[-1]) for each in lines if each.startswith(name))


def test_a_key_too_many_is_not_read_and_known_keys_go_on() -> None:
    with serving(settings(keys=50)) as live:
        put(live.client)
        sent = [reading(number, f"s{number}") for number in range(80)]
        answer = live.client.post("/v1/events", json=sent).json()

        assert answer["accepted"] == 80
        assert [each["index"] for each in answer["unread"]] == list(range(50, 80))
        assert "limit `keys` allows (50)" in answer["unread"][0]["problems"][0]
        assert keys_of(live.client) == 50
        # What is not read is kept, is told in metrics, and takes nothing from the others.
        assert metric(live.client, "ensue_full_events_total") == 30
        assert len(live.client.get("/v1/history").json()["events"]) == 80
        hot = [reading(100, "s7", 90, 1), reading(101, "s70", 90, 1)]
        unread = live.client.post("/v1/events", json=hot).json()["unread"]
        assert [each["index"] for each in unread] == [1]
        outputs = live.client.get("/v1/outputs").json()["outputs"]
        assert [each["key"] for each in outputs] == ["s7"]


def test_there_is_room_again_once_windows_have_passed() -> None:
    with serving(settings(keys=50)) as live:
        put(live.client, WINDOWED)
        live.client.post("/v1/events", json=[reading(n, f"s{n}") for n in range(60)])
        # Any event moves the clock; a key that is known needs no room.
        live.client.post("/v1/events", json=[reading(100, "s1", 20, 30)])
        station = live.station
        asyncio.run_coroutine_threadsafe(station.call(station.save_states), live.loop).result(30)
        answer = live.client.post("/v1/events", json=[reading(101, "new", 20, 31)]).json()

        assert answer["unread"] == []
        assert keys_of(live.client) <= 2


def test_all_rules_together_have_a_bound_too() -> None:
    with serving(settings(keys_in_all=30)) as live:
        put(live.client)
        live.client.post("/v1/events", json=[reading(n, f"s{n}") for n in range(40)])
        time.sleep(0.3)
        live.client.post("/v1/events", json=[reading(50, "s1", 20, 1)])
        answer = live.client.post("/v1/events", json=[reading(51, "new", 20, 1)]).json()

        assert "limit `keys_in_all`" in answer["unread"][0]["problems"][0]


def test_rules_that_read_outputs_are_bounded_by_what_leads_to_them() -> None:
    with serving(settings(keys=10)) as live:
        put(live.client, CHAINED)
        unread = 0
        for number in range(200):
            pair = [
                reading(2 * number, f"s{number}", 20, number),
                reading(2 * number + 1, f"s{number}", 90, number),
            ]
            unread += len(live.client.post("/v1/events", json=pair).json()["unread"])
        name = 'ensue_rule_keys{channel="main",library="heat",rule="Twice"}'

        assert unread
        assert metric(live.client, name) <= 10 + 64


def test_a_private_library_with_too_many_keys_is_ended() -> None:
    with serving(settings(keys=20)) as live:
        live.client.post("/v1/events", json=[reading(n, f"s{n}") for n in range(40)])
        with live.client.stream("GET", "/v1/events", params={"rules": RULES, "after": "0"}) as got:
            text = ""
            for part in got.iter_text():
                text += part
                if "event: problem" in text and text.endswith("\n\n"):
                    break

        assert "limit `keys`" in text


@pytest.mark.parametrize("batch", [1, 25])
def test_after_a_kill_the_same_events_are_left_out(tmp_path: Path, batch: int) -> None:
    with_limit = "[limits]\nkeys = 20\n"
    server = ServerProcess(tmp_path, with_limit)
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            put(client)
            sent = [reading(n, f"s{n % 60}", 20 if n < 60 else 90, n // 60) for n in range(120)]
            for begin in range(0, 120, batch):
                client.post("/v1/events", json=sent[begin : begin + batch]).raise_for_status()
            before = client.get("/v1/outputs").json()["outputs"]
        server.kill()
        server = ServerProcess(tmp_path, with_limit)
        with httpx.Client(base_url=server.url, timeout=30) as client:
            client.post("/v1/events", json=[reading(500, "s1", 20, 70), reading(501, "s1", 90, 70)])

            assert [each["key"] for each in before] == [f"s{n}" for n in range(19, -1, -1)]
            library = client.get("/v1/libraries/heat").json()
            assert (library["refused"], metric(client, "ensue_full_events_total")) == (80, 0)
            after = client.get("/v1/outputs").json()["outputs"]
            assert [each["key"] for each in after] == ["s1", *(each["key"] for each in before)]
    finally:
        server.stop()
    journal = ServerJournal(tmp_path / "data" / "journal.db")
    kinds = [each.kind for each in journal.page(0, 2**62)]
    journal.close()
    assert kinds.count(UNREAD) == 80
