"""Several channels in one server: each a stream of its own, joined only by links."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from ensue.errors import UsageError
from ensue.server.settings import read_settings
from tests.server.live import RULES, ServerProcess, reading
from tests.servers.forking import completed

CASCADE = """
eventtype Hot { attribute string sensor; };
eventtype Fire { attribute string sensor; };

Fire correlation Burns (Hot h)
    h
{
    case true: push new Fire { sensor = h.sensor };
}
"""
CONFIG = """
[[channel]]
name = "alarms"
lateness = "1 s"

[[channel]]
name = "empty"

[[link]]
from = "main"
to = "alarms"
where = "sensor != 'ignored'"

[[library]]
name = "heat"
file = "heat.cor"

[[library]]
name = "fire"
file = "fire.cor"
channel = "alarms"
"""


def folder_of(tmp_path: Path) -> Path:
    (tmp_path / "heat.cor").write_text(RULES)
    (tmp_path / "fire.cor").write_text(CASCADE)
    return tmp_path


def events(begin: int, count: int) -> list[dict[str, Any]]:
    """Every second one makes an output."""
    return [
        reading(n, f"s{n // 2}" if n % 10 else "ignored", 20.0 if n % 2 == 0 else 70.0)
        for n in range(begin, begin + count)
    ]


def outputs(url: str) -> list[str]:
    answer = httpx.get(f"{url}/v1/outputs", params={"limit": 10_000})
    assert answer.status_code == 200, answer.text
    return sorted(each["event"]["id"] for each in answer.json()["outputs"])


def until(url: str, count: int) -> list[str]:
    limit = time.monotonic() + 20
    while len(found := outputs(url)) < count and time.monotonic() < limit:
        time.sleep(0.05)
    return found


def test_rules_of_one_channel_read_outputs_of_another_once_also_across_a_kill(
    tmp_path: Path,
) -> None:
    """A server is killed and started again, as a process."""
    server = ServerProcess(folder_of(tmp_path), CONFIG)
    sent = 0
    for _ in range(3):
        for _ in range(4):
            batch = events(sent, 40)
            assert httpx.post(f"{server.url}/v1/events", json=batch).json()["accepted"] == 40
            sent += 40
        server.kill()
        server = ServerProcess(tmp_path, CONFIG)
    hot = outputs(server.url)
    assert len(hot) > 100
    # The last output waits for the clock of `alarms` to pass its lateness.
    late = httpx.post(
        f"{server.url}/channels/alarms/v1/events", json=[reading(sent + 60, "x", 1.0)]
    )
    assert late.status_code == 200, late.text

    fires = until(f"{server.url}/channels/alarms", len(hot))
    assert len(fires) == len(hot)
    assert len(set(fires)) == len(fires)
    assert outputs(f"{server.url}/channels/empty") == []
    assert server.stop() == 0
    assert "Traceback" not in server.errors.read_text()


def test_a_channel_is_an_api_of_its_own(tmp_path: Path) -> None:
    server = ServerProcess(folder_of(tmp_path), CONFIG)
    base = f"{server.url}/channels/empty"
    httpx.post(f"{base}/v1/events", json=[reading(0, "a", 20.0)]).raise_for_status()

    assert len(httpx.get(f"{base}/v1/history").json()["events"]) == 1
    assert httpx.get(f"{server.url}/v1/history").json()["events"] == []
    put = httpx.put(
        f"{base}/v1/libraries/heat", content=RULES, headers={"Content-Type": "text/plain"}
    )
    assert put.status_code == 201
    assert httpx.get(f"{server.url}/channels/nothing/v1/history").status_code == 404
    assert "Ensue" in httpx.get(f"{base}/").text
    listed = {each["name"]: each for each in httpx.get(f"{server.url}/v1/channels").json()}
    assert list(listed) == ["main", "alarms", "empty"]
    assert listed["empty"]["events"] == 1
    assert listed["alarms"]["libraries"] == ["fire"]
    assert listed["alarms"]["lateness"] == "1 s"
    [link] = listed["alarms"]["links"]
    assert (link["from"], link["problem"]) == ("main", None)
    metrics = httpx.get(f"{server.url}/metrics").text
    assert 'ensue_events_total{channel="empty"} 1' in metrics
    assert server.stop() == 0


def test_commands_work_on_a_channel_by_its_url(tmp_path: Path) -> None:
    server = ServerProcess(folder_of(tmp_path), CONFIG)
    base = f"{server.url}/channels/empty"
    command = ["publish", "--type", "Reading", "--data", "{}", "--url", base]
    done = completed(command, tmp_path)

    assert "1 event published" in done.stdout, done.stderr
    assert len(httpx.get(f"{base}/v1/history").json()["events"]) == 1
    assert httpx.get(f"{server.url}/v1/history").json()["events"] == []
    assert server.stop() == 0


def test_a_token_is_limited_to_channels(tmp_path: Path) -> None:
    tokens = (
        '[[token]]\nname = "a"\nsecret = "0123456789abcdef"\nroles = ["publish", "history"]\n'
        'channels = ["empty"]\n'
    )
    server = ServerProcess(folder_of(tmp_path), CONFIG + tokens)
    headers = {"Authorization": "Bearer 0123456789abcdef"}

    refused = httpx.post(f"{server.url}/v1/events", json=[reading(0, "a", 1.0)], headers=headers)
    assert refused.status_code == 403
    assert refused.json()["type"] == "urn:ensue:problem:channel"
    base = f"{server.url}/channels/empty"
    taken = httpx.post(f"{base}/v1/events", json=[reading(0, "a", 1.0)], headers=headers)
    assert taken.status_code == 200
    listed = httpx.get(f"{base}/v1/channels", headers=headers).json()
    assert [each["name"] for each in listed] == ["empty"]
    assert httpx.get(f"{base}/v1/history").status_code == 401
    assert server.stop() == 0


def test_channels_and_links_that_cannot_be_are_told(tmp_path: Path) -> None:
    file = tmp_path / "ensue.toml"
    file.write_text(
        '[[channel]]\nname = "main"\n[[channel]]\nname = "b"\nlateness = "soon"\n'
        '[[link]]\nfrom = "main"\nto = "b"\n[[link]]\nfrom = "b"\nto = "main"\n'
        '[[link]]\nfrom = "c"\nto = "b"\nwhere = "x >"\n'
    )
    with pytest.raises(UsageError) as raised:
        read_settings(file)
    told = str(raised.value)
    assert "every server has a channel `main`" in told
    assert "`lateness`" in told
    assert "links lead from channel `main` back to it" in told
    assert "there is no channel `c`" in told
    assert "`where`" in told
