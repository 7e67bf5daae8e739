"""A service that cannot be reached at start is down alone, over real servers.

Cars are on MQTT, the office reads a Redis stream, and the shop's JetStream is not there yet.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.servers.messaging import Nats
from tests.servers.programs import free_port

from .conftest import StartServer
from .processes import Serving
from .test_serving import Traffic, speed, until

nats = pytest.importorskip("nats")


class Shop:
    """A server of its own for a test, that is not there before it is started."""

    def __init__(self) -> None:
        self.server = Nats()
        self.server.command()
        self.server.make_folder()

    def config(self, traffic: Traffic, more: str) -> str:
        wants = f'[[subscribe]]\nat = "shop"\nfrom = ["cars{traffic.number}"]\n'
        service = (
            f'[[service]]\nname = "shop"\nkind = "nats-jetstream"'
            f'\naddress = "shop.{traffic.number}"\nurl = "nats://me:secret@127.0.0.1:{self.server.port}"\n'
        )
        return f"{traffic.config(more)}\n{service}\n{wants}"


@pytest.fixture
def traffic(server: StartServer) -> Traffic:
    return Traffic(server("mqtt"), server("redis"))


def begun(config: Path, text: str) -> Serving:
    """A gateway that is not waited for."""
    config.write_text(text, "utf-8")
    served = Serving(config)
    with served.errors.open("wb") as errors:
        served.process = subprocess.Popen(
            [sys.executable, "-m", "ensue", "serve", str(config)], stderr=errors
        )
    return served


def answer(place: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(place) as given:
            return given.status, json.load(given)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)
    except OSError:
        return 0, {}


def test_others_carry_events_while_a_service_is_absent(traffic: Traffic, tmp_path: Path) -> None:
    """The start of a process, and reasons that are told every five seconds."""
    shop = Shop()
    port, listen = shop.server.port, free_port()
    served = begun(tmp_path / "g.toml", shop.config(traffic, f'listen = "127.0.0.1:{listen}"'))
    place = f"http://127.0.0.1:{listen}"
    try:
        until(lambda: answer(f"{place}/links")[0] == 200)
        until(lambda: _have_come(traffic))
        until(lambda: served.said.count("not ready: service `shop`") >= 1)
        status, told = answer(f"{place}/ready")
        assert (status, told["ready"], list(told["waits_for"])) == (503, False, ["shop"])
        assert f"service `shop` at nats://127.0.0.1:{port}: cannot connect" in served.said
        assert "(it is tried again)" in served.said
        assert "ready" not in served.said.splitlines()
        assert "secret" not in served.said

        shop.server.resume()
        served.wait_ready()
        until(lambda: answer(f"{place}/ready")[0] == 200)
        traffic.drive([speed(2, 60), speed(3, 10)])
        until(lambda: "3" in stored(shop.server.url, f"shop.{traffic.number}"))

        assert stored(shop.server.url, f"shop.{traffic.number}") == ["2", "3"]
        connected = f"ensue: service `shop` at nats://127.0.0.1:{port} is connected"
        until(lambda: connected in served.said)
        assert served.stop() == 0
    finally:
        if served.process is not None and served.process.poll() is None:
            served.kill()
        shop.server.stop()


def test_only_what_is_required_has_to_be_there(traffic: Traffic, tmp_path: Path) -> None:
    shop = Shop()
    more = f'require = ["cars{traffic.number}", "office{traffic.number}"]'
    served = begun(tmp_path / "g.toml", shop.config(traffic, more))
    try:
        served.wait_ready()
        traffic.drive([speed(1, 60)])
        until(lambda: traffic.ids() == ["1"])

        assert traffic.ids() == ["1"]
    finally:
        served.kill()


def test_events_wait_for_a_service_that_was_there_before(traffic: Traffic, tmp_path: Path) -> None:
    """Two starts of the process. The second finds the shop away, for which an event had come."""
    shop = Shop()
    more = f'require = ["cars{traffic.number}"]'
    shop.server.resume()
    served = begun(tmp_path / "g.toml", shop.config(traffic, more))
    try:
        served.wait_ready()
        traffic.drive([speed(1, 10)])
        until(lambda: len(stored(shop.server.url, f"shop.{traffic.number}")) == 1)
        served.kill()
        shop.server.pause()
        served = begun(tmp_path / "g.toml", shop.config(traffic, more))
        served.wait_ready()
        traffic.drive([speed(2, 10), speed(3, 60)])
        until(lambda: traffic.ids() == ["3"])
        served.kill()
        shop.server.resume()
        served = begun(tmp_path / "g.toml", shop.config(traffic, more))
        until(lambda: len(stored(shop.server.url, f"shop.{traffic.number}")) == 3)
        time.sleep(0.5)

        assert stored(shop.server.url, f"shop.{traffic.number}") == ["1", "2", "3"]
        assert traffic.ids() == ["3"]
    finally:
        served.kill()
        shop.server.stop()


def test_a_service_that_is_required_has_to_be_one(tmp_path: Path) -> None:
    config = tmp_path / "g.toml"
    config.write_text(
        '[gateway]\nname = "g"\nrequire = ["car"]\n'
        '[[service]]\nname = "cars"\nkind = "memory"\nurl = "memory:x"\n'
    )
    served = begun(config, config.read_text())
    assert served.process is not None

    assert served.process.wait(30) == 2
    assert "[gateway] require: there is no service `car`: did you mean `cars`?" in served.said


_trials = count(1000)


def _have_come(traffic: Traffic) -> bool:
    """Drive once more; a broker keeps nothing for a gateway that has not subscribed yet."""
    traffic.drive([speed(next(_trials), 60)])
    return bool(traffic.ids())


def stored(url: str, subject: str) -> list[str]:
    """The ids of the events that JetStream has of a subject, in their order."""

    async def read() -> list[str]:
        client = await nats.connect(url)
        try:
            jetstream = client.jetstream()
            name = await jetstream.find_stream_name_by_subject(subject)
            state = (await jetstream.stream_info(name)).state
            return [
                json.loads((await jetstream.get_msg(name, number)).data or b"")["id"]
                for number in range(max(state.first_seq, 1), state.last_seq + 1)
            ]
        finally:
            await client.close()

    return asyncio.run(read())
