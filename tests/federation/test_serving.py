"""`ensue serve` and `ensue request` over real brokers, driven as a user drives them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.servers.messaging import Broker
from tests.servers.programs import free_port

from .conftest import StartServer
from .processes import serving

redis = pytest.importorskip("redis")
publishing = pytest.importorskip("paho.mqtt.publish")

_numbers = count(1)
PATIENCE = 30.0


def speed(number: int, kmh: float) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": str(number),
        "source": "car",
        "type": "Speed",
        "time": "2026-01-01T00:00:00Z",
        "data": {"speed": kmh, "plate": f"D {number}"},
    }


class Traffic:
    """Cars on MQTT and an office on Redis, at addresses of their own."""

    def __init__(self, mqtt: Broker, store: Broker) -> None:
        self.number = next(_numbers)
        self.mqtt, self.store = mqtt, store
        self.cars, self.office = f"traffic/cars{self.number}", f"traffic:office{self.number}"
        self.client: Any = redis.Redis(port=store.port)

    def config(self, more: str = "", where: str = "speed > 50") -> str:
        return f"""
[gateway]
name = "roadside{self.number}"
{more}

[[service]]
name = "cars{self.number}"
kind = "mqtt"
url = "{self.mqtt.url}"
address = "{self.cars}"

[[service]]
name = "office{self.number}"
kind = "redis"
url = "{self.store.url}"
address = "{self.office}"

[[subscribe]]
at = "office{self.number}"
from = ["cars{self.number}"]
where = "{where}"
"""

    def drive(self, events: Sequence[dict[str, Any]]) -> None:
        messages = [{"topic": self.cars, "payload": json.dumps(each), "qos": 1} for each in events]
        publishing.multiple(messages, hostname="127.0.0.1", port=self.mqtt.port)

    def seen(self) -> list[dict[str, Any]]:
        return [json.loads(fields[b"event"]) for _, fields in self.client.xrange(self.office)]

    def ids(self) -> list[str]:
        return [each["id"] for each in self.seen()]

    def request(self, *words: str) -> subprocess.CompletedProcess[str]:
        via = ("--via", f"cars{self.number}", "--url", self.mqtt.url)
        command = [sys.executable, "-m", "ensue", "request", words[0], *via, *words[1:]]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def traffic(server: StartServer) -> Traffic:
    return Traffic(server("mqtt"), server("redis"))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


def test_a_standing_request_brings_what_matches(traffic: Traffic, tmp_path: Path) -> None:
    with serving(tmp_path / "gateway.toml", traffic.config()) as served:
        traffic.drive([speed(1, 40), speed(2, 60), speed(3, 51)])
        until(lambda: len(traffic.ids()) == 2)

        assert traffic.ids() == ["2", "3"]
        assert traffic.seen()[0]["data"] == {"speed": 60, "plate": "D 2"}
        assert all(
            list(fields) == [b"event"] for _, fields in traffic.client.xrange(traffic.office)
        )
        assert served.stop() == 0


def test_requests_change_what_comes_while_it_runs(traffic: Traffic, tmp_path: Path) -> None:
    office = f"office{traffic.number}"
    with serving(tmp_path / "gateway.toml", traffic.config()):
        asked = traffic.request("subscribe", "--at", office, "--where", "speed > 30")
        assert asked.returncode == 0, asked.stderr
        assert f"done by `roadside{traffic.number}` at `{office}`" in asked.stderr
        traffic.drive([speed(1, 40), speed(2, 20)])
        until(lambda: traffic.ids() == ["1"])
        ended = traffic.request("unsubscribe", "--at", office, "--where", "speed > 30")
        assert ended.returncode == 0, ended.stderr
        traffic.drive([speed(3, 40), speed(4, 60)])
        until(lambda: len(traffic.ids()) == 2)

        assert traffic.ids() == ["1", "4"]


def test_a_request_publishes_an_event(traffic: Traffic, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps(speed(7, 1)))
    with serving(tmp_path / "gateway.toml", traffic.config()):
        asked = traffic.request("publish", "--to", f"office{traffic.number}", "--event", str(event))
        assert asked.returncode == 0, asked.stderr
        until(lambda: traffic.ids() == ["7"])

        assert traffic.ids() == ["7"]


def test_a_request_that_nobody_answers_is_a_finding(traffic: Traffic) -> None:
    asked = traffic.request("subscribe", "--at", "nowhere", "--wait", "0.5")

    assert asked.returncode == 1
    assert "no gateway has answered within 0.5 s" in asked.stderr


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_nothing_is_lost_or_doubled_over_restarts(
    ending: str, traffic: Traffic, tmp_path: Path
) -> None:
    sent = 0
    with serving(tmp_path / "gateway.toml", traffic.config()) as served:
        for _ in range(3):
            traffic.drive([speed(number, 60) for number in range(sent, sent + 200)])
            sent += 200
            getattr(served, ending)()
            traffic.drive([speed(number, 60) for number in range(sent, sent + 50)])
            sent += 50
            served.start()
        until(lambda: len(traffic.ids()) >= sent)
        time.sleep(0.5)

        assert sorted(traffic.ids(), key=int) == [str(number) for number in range(sent)]


@pytest.mark.parametrize("kind", ["mqtt", "store"])
def test_nothing_is_lost_when_a_server_goes_away(
    kind: str, traffic: Traffic, tmp_path: Path
) -> None:
    with serving(tmp_path / "gateway.toml", traffic.config()) as served:
        traffic.drive([speed(number, 60) for number in range(200)])
        until(lambda: len(traffic.ids()) == 200)
        broker: Broker = getattr(traffic, kind)
        broker.pause()
        if kind == "store":
            traffic.drive([speed(number, 60) for number in range(200, 300)])
        time.sleep(0.5)
        broker.resume()
        if kind == "mqtt":
            traffic.drive([speed(number, 60) for number in range(200, 300)])
        until(lambda: len(traffic.ids()) >= 300)
        time.sleep(0.5)

        assert sorted(traffic.ids(), key=int) == [str(number) for number in range(300)]
        until(lambda: "service `" in served.said)
        assert "service `" in served.said


def test_health_and_metrics_are_served(traffic: Traffic, tmp_path: Path) -> None:
    port = free_port()
    place = f"http://127.0.0.1:{port}"
    more = f'listen = "127.0.0.1:{port}"'
    with serving(tmp_path / "gateway.toml", traffic.config(more)):
        traffic.drive([speed(1, 40), speed(2, 60)])
        until(lambda: traffic.ids() == ["2"])
        with urllib.request.urlopen(f"{place}/health") as answer:
            assert json.load(answer)["status"] == "ready"
        with urllib.request.urlopen(f"{place}/metrics") as answer:
            figures = answer.read().decode()

        labels = f'gateway="roadside{traffic.number}",service="cars{traffic.number}",kind="mqtt"'
        assert f"ensue_link_events_in_total{{{labels}}} 2" in figures
        assert f"ensue_link_events_filtered_total{{{labels}}} 1" in figures


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(
        """
[gateway]
nam = "x"

[[service]]
name = "cars"
kind = "mqt"

[[service]]
name = "office"
kind = "redis"
adress = "a"
password = "${env:ENSUE_NOT_SET}"

[[service]]
name = "office"
kind = "mqtt"
qos = 7
keepalive = "long"

[[service]]
name = "orders"
kind = "nats-jetstream"
start = "never"

[[subscribe]]
at = "office"
where = "speed >"

[gatway]
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "ensue", "serve", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    for said in (
        "[gatway]: there is no such table: did you mean `gateway`?",
        "[gateway] nam: there is no such key: did you mean `name`?",
        "[gateway] name: it is missing",
        "[[service]] 1 (`cars`) kind: there is no kind `mqt`: did you mean `mqtt`?",
        "[[service]] 2 (`office`) adress: kind `redis` has no such key: did you mean `address`?",
        "[[service]] 2 password: the environment has no variable `ENSUE_NOT_SET`",
        "[[service]] 3: the name `office` is taken",
        "[[service]] 3 (`office`): qos: expected `int` <= 2",
        "[[service]] 3 (`office`): keepalive: expected `int`, got `str`",
        "[[service]] 4 (`orders`): start: expected `str` matching regex '^(latest|earliest)$'",
        "[[subscribe]] 1 where: in `speed >`, character 8",
    ):
        assert said in done.stderr
    assert "Traceback" not in done.stderr
