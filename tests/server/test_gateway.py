"""A gateway in the process of a server: told of by the API and the metrics, stopped with it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.federation.conftest import StartServer, server
from tests.server.live import ServerProcess

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


def test_mistakes_of_both_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "ensue.toml"
    file.write_text('[server]\nlisten = "x"\n[gateway]\n[[service]]\nname = "a"\nkind = "telex"\n')
    ended = subprocess.run(
        [sys.executable, "-m", "ensue", "serve", str(file)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "is no address" in ended.stderr
    assert "telex" in ended.stderr
