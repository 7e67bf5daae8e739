"""A gateway in the process of a server: told of by the API and the metrics, stopped with it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright

from tests.federation.conftest import StartServer, server
from tests.server.console.axe import findings
from tests.server.console.opened import CHROMIUM, NEEDS_CHROMIUM, PICTURES
from tests.server.live import ServerProcess
from tests.servers.forking import completed
from tests.servers.programs import free_port

__all__ = ["server"]

redis = pytest.importorskip("redis")


def test_a_gateway_runs_beside_the_api(tmp_path: Path, server: StartServer) -> None:
    broker = server("redis")
    tables = f"""
[gateway]
name = "bridge"

[[service]]
name = "one"
kind = "redis"
url = "{broker.url}"
address = "one:events"

[[service]]
name = "two"
kind = "redis"
url = "{broker.url}"
address = "two:events"

[[subscribe]]
at = "two"
from = ["one"]
where = "speed > 50"
"""
    running = ServerProcess(tmp_path, tables)
    (gateway,) = httpx.get(f"{running.url}/v1/gateways").json()
    assert gateway["health"]["ready"]
    assert {each["service"] for each in gateway["status"]} == {"one", "two"}

    client = redis.Redis(port=broker.port)
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "car",
        "type": "Speed",
        "time": "2026-01-01T00:00:00Z",
        "data": {"speed": 80},
    }
    client.xadd("one:events", {"event": json.dumps(event)})
    limit = time.monotonic() + 20
    while not (found := client.xrange("two:events")) and time.monotonic() < limit:
        time.sleep(0.05)
    assert json.loads(found[0][1][b"event"])["data"] == {"speed": 80}
    client.close()
    assert "one" in httpx.get(f"{running.url}/metrics").text
    assert running.stop() == 0


def test_a_gateway_brings_events_of_others_to_the_rules_and_outputs_to_others(
    tmp_path: Path, server: StartServer
) -> None:
    broker, port = server("redis"), free_port()
    tables = f"""
[gateway]
name = "inlet"

[[service]]
name = "cars"
kind = "redis"
url = "{broker.url}"
address = "cars:events"

[[service]]
name = "here"
kind = "http"
url = "http://127.0.0.1:{port}"
address = "v1/events"

[[subscribe]]
at = "here"
from = ["cars"]
where = "speed > 50"

[[subscribe]]
at = "cars"
from = ["here"]
where = "EXISTS correlation"
"""
    running = ServerProcess(tmp_path, tables, port)
    rules = """
    eventtype Speed { attribute long speed; };
    eventtype Race { attribute long speed; };
    Race correlation Racing (Speed s) s{2} { case true: push new Race { speed = s.speed }; }
    """
    put = httpx.put(
        f"{running.url}/v1/libraries/race", content=rules, headers={"Content-Type": "text/plain"}
    )
    assert put.status_code == 201
    client = redis.Redis(port=broker.port)
    for number, speed in enumerate((40, 80, 90)):
        event = {"specversion": "1.0", "id": str(number), "source": "car", "type": "Speed",
                 "time": f"2026-01-01T00:00:0{number}Z", "data": {"speed": speed}}  # fmt: skip
        client.xadd("cars:events", {"event": json.dumps(event)})
    limit = time.monotonic() + 30
    found: list[int] = []
    while len(found) < 2 and time.monotonic() < limit:
        events = httpx.get(f"{running.url}/v1/history").json()["events"]
        found = [each["data"]["speed"] for each in events]
        time.sleep(0.1)
    assert found == [80, 90], running.errors.read_text()
    outputs: list[int] = []
    while not outputs and time.monotonic() < limit:
        entries = [json.loads(each[1][b"event"]) for each in client.xrange("cars:events")]
        outputs = [each["data"]["speed"] for each in entries if each["type"] == "Race"]
        time.sleep(0.1)
    client.close()
    assert outputs == [90]
    assert running.stop() == 0


def test_mistakes_of_both_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "ensue.toml"
    file.write_text('[server]\nlisten = "x"\n[gateway]\n[[service]]\nname = "a"\nkind = "telex"\n')
    ended = completed(["serve", str(file)], tmp_path)
    assert ended.returncode == 2
    assert "is no address" in ended.stderr
    assert "telex" in ended.stderr


@NEEDS_CHROMIUM
def test_the_console_shows_services_their_state_and_what_is_asked_for(
    tmp_path: Path, server: StartServer
) -> None:
    broker = server("redis")
    services = "".join(
        f'[[service]]\nname = "{name}"\nkind = "redis"\nurl = "{broker.url}"\naddress = "{name}"\n'
        for name in ("cars", "office")
    )
    request = '[[subscribe]]\nat = "office"\nfrom = ["cars"]\nwhere = "speed > 50"\n'
    running = ServerProcess(tmp_path, f'[gateway]\nname = "roadside"\n{services}{request}')
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{running.url}/#/gateways")
        expect(page.get_by_role("heading", name="Gateway roadside ready")).to_be_visible()
        expect(page.get_by_role("row", name="cars redis connected")).to_be_visible()
        expect(page.get_by_text("office asks for")).to_be_visible()
        expect(page.get_by_text("speed > 50").first).to_be_visible()
        assert findings(page) == []
        if os.environ.get("ENSUE_PICTURES"):
            page.screenshot(path=PICTURES / "console-gateways.png")
        assert problems == []
        browser.close()
    running.stop()
