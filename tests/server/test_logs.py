"""The log: one line for each record, when something begins to fail and when it ends, no secrets."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.server.logs.secrets import hider
from ensue.server.logs.writing import LineFormatter
from tests.server.live import RULES, ServerProcess, reading
from tests.servers.messaging import Redis
from tests.servers.programs import MissingServerError, skip_as_missing

LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARNING|ERROR|CRITICAL) +ensue\S* .+"
)
FOR_PEOPLE = re.compile(r"console and API at http\S+/|ready|reloaded: .+|not reloaded: .+")
PLAIN = {"Content-Type": "text/plain"}


def lines(server: ServerProcess) -> list[str]:
    return server.errors.read_text().splitlines()


def records(server: ServerProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(server)]


def awaited(server: ServerProcess, words: str, seconds: float = 20) -> None:
    limit = time.monotonic() + seconds
    while words not in server.errors.read_text():
        assert time.monotonic() < limit, (words, server.errors.read_text())
        time.sleep(0.02)


def test_each_line_of_the_text_has_a_time_a_level_and_where_it_is_from(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "[log]\naccess = true\n")
    httpx.put(f"{server.url}/v1/libraries/heat", content=RULES, headers=PLAIN)
    named = httpx.get(f"{server.url}/v1/rules?x=1", headers={"X-Request-Id": "mine-7"})
    forged = httpx.get(f"{server.url}/nothing%0aERROR", headers={"X-Request-Id": "a b\tc"})
    server.process.send_signal(signal.SIGHUP)
    awaited(server, "reloaded")
    assert server.stop() == 0

    found = lines(server)
    others = [each for each in found if not LINE.fullmatch(each)]
    assert all(FOR_PEOPLE.fullmatch(each) for each in others), others
    assert named.headers["X-Request-Id"] == "mine-7"
    assert re.fullmatch("[0-9a-f]{16}", forged.headers["X-Request-Id"])
    (access,) = [each for each in found if "request=mine-7" in each]
    assert "ensue.server.access GET /v1/rules request=mine-7 status=400" in access
    assert "x=1" not in access
    (change,) = [each for each in found if "changes library `heat`: put: version 1" in each]
    assert "`anyone`" in change
    assert any("nothing\\nERROR" in each for each in found)


def test_in_json_every_line_is_an_object(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, '[log]\nformat = "json"\n')
    httpx.get(f"{server.url}/v1/rules")
    server.process.send_signal(signal.SIGHUP)
    awaited(server, "reloaded")
    assert server.stop() == 0

    found = records(server)
    assert all({"time", "level", "logger", "message"} <= each.keys() for each in found)
    messages = [each["message"] for each in found]
    assert messages[0].startswith("console and API at http://")
    assert {"ready", "everything is in force", "ensue has ended"} <= set(messages)
    # The access log is off unless it is asked for.
    assert not [each for each in found if each["logger"].endswith("access")]


def test_a_level_leaves_out_what_is_below_and_a_reload_changes_it(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, '[log]\nlevel = "warning"\n')
    assert [each for each in lines(server) if LINE.fullmatch(each)] == []
    changed = server.config.read_text().replace('"warning"', '"info"\naccess = true')
    server.config.write_text(changed)
    server.process.send_signal(signal.SIGHUP)
    awaited(server, "reloaded")
    httpx.get(f"{server.url}/v1/rules")
    assert server.stop() == 0
    assert "ensue.server.access GET /v1/rules" in server.errors.read_text()
    assert "ensue has ended" in server.errors.read_text()


SECRETS = {
    "token": "token-of-the-file-4711",
    "environment": "from-the-environment-4712",
    "password": "p4ssw0rd-of-the-broker",
    "webhook": "signing-secret-4713",
    "guess": "guessed-token-of-a-stranger",
    "query": "token-in-a-query-4714",
}


def test_no_secret_is_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs the start of a gateway, whose broker is not there, at the level that says the most."""
    monkeypatch.setenv("ENSUE_TEST_SECRET", SECRETS["environment"])
    server = ServerProcess(
        tmp_path,
        f"""
[log]
level = "debug"
format = "json"
access = true

[[token]]
name = "boss"
roles = ["admin"]
secret = "{SECRETS["token"]}"

[[token]]
name = "other"
roles = ["publish"]
secret = "${{env:ENSUE_TEST_SECRET}}"

[webhooks]
networks = ["127.0.0.0/8"]
""",
    )
    with httpx.Client(base_url=server.url, timeout=20) as client:
        for secret in (SECRETS["token"], SECRETS["environment"], SECRETS["guess"]):
            headers = {"Authorization": f"Bearer {secret}"}
            client.get("/v1/rules", headers=headers)
            client.get("/v1/rules", params={"token": SECRETS["query"]}, headers=headers)
            client.post("/v1/events", content=b"{", headers=headers | {"Content-Type": secret})
        boss = {"Authorization": f"Bearer {SECRETS['token']}"}
        hook = {
            "url": f"http://user:{SECRETS['password']}@127.0.0.1:9/x?token={SECRETS['query']}",
            "secret": SECRETS["webhook"],
            "kinds": ["event"],
        }
        client.put("/v1/webhooks/pager", json=hook, headers=boss)
        hook["url"] = f"http://127.0.0.1:9/x?token={SECRETS['query']}"
        client.put("/v1/webhooks/pager", json=hook, headers=boss).raise_for_status()
        client.post("/v1/events", json=reading(1, "a", 20), headers=boss).raise_for_status()
        awaited(server, "webhook `pager` has failed")
    broken = server.config.read_text().replace('level = "debug"', 'level = "no-such"')
    server.config.write_text(broken)
    server.process.send_signal(signal.SIGHUP)
    awaited(server, "not reloaded")
    assert server.stop() == 0

    told = server.errors.read_text()
    assert [name for name, secret in SECRETS.items() if secret in told] == []
    refused = [each for each in records(server) if "unknown token was refused" in each["message"]]
    assert [(each["level"], each["client"]) for each in refused] == [("warning", "127.0.0.1")]


@given(st.text(min_size=6).filter(lambda text: text not in "***"), st.text(), st.text())
def test_a_known_secret_never_stands_in_a_line(secret: str, before: str, after: str) -> None:
    assert secret not in hider([secret])(f"{before}{secret}{after}")


@given(st.text(), st.text(), st.sampled_from(["text", "json"]))
def test_whatever_is_logged_is_one_printable_line(message: str, value: str, form: Any) -> None:
    record = logging.LogRecord("ensue.server", logging.ERROR, "", 1, "%s", (message,), None)
    record.what = value
    line = LineFormatter(form, hider([])).format(record)

    assert len(line.splitlines()) == 1 or form == "json"
    assert "\n" not in line
    assert "\x1b" not in line
    line.encode()
    if form == "json":
        assert json.loads(line)["level"] == "error"


def test_places_where_secrets_stand_are_hidden() -> None:
    hide = hider([])

    for text in (
        "Authorization: Bearer abc.def-123",
        "ensue.v1, ensue.bearer.abc.def-123",
        "mqtt://user:abc.def-123@broker:1883/x",
        "amqps://abc.def-123@broker/",
        "GET /x?token=abc.def-123&y=1",
        "api_key=abc.def-123",
    ):
        assert "abc" not in hide(text), text
    assert hide("the bearer of news at http://host/x?y=1") != ""
    assert hide("http://host/x?y=1") == "http://host/x?y=1"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder on a disk of its own that has a few megabytes."""
    place = folder / "disk"
    place.mkdir()
    size = 12
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", str(place)], capture_output=True
    )
    if done.returncode:
        skip_as_missing("a disk that can be filled needs the right to mount one")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_full_disk_is_told_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        limits = '[log]\nformat = "json"\n[limits]\nsave_seconds = 0.5\n'
        server = ServerProcess(disk, limits)
        httpx.put(f"{server.url}/v1/libraries/heat", content=RULES, headers=PLAIN)
        assert httpx.post(f"{server.url}/v1/events", json=reading(1, "a", 20)).status_code == 200
        filler = disk / "filler"
        with pytest.raises(OSError, match="space"):
            filler.write_bytes(bytes(64 * 1024 * 1024))
        # What is there of room in the files themselves is used up first.
        statuses = [
            httpx.post(f"{server.url}/v1/events", json=large(number)).status_code
            for number in range(60)
        ]
        assert statuses[-1] == 503
        assert httpx.get(f"{server.url}/health").status_code == 503
        time.sleep(1.5)
        os.truncate(filler, 0)
        # Nobody publishes: the server itself finds that it can write again.
        limit = time.monotonic() + 20
        while httpx.get(f"{server.url}/ready").status_code != 200:
            assert time.monotonic() < limit
            time.sleep(0.05)
        assert httpx.post(f"{server.url}/v1/events", json=reading(2, "a", 70)).status_code == 200
        assert len(httpx.get(f"{server.url}/v1/outputs").json()["outputs"]) == 1
        assert server.stop() == 0
        found = [
            (each["level"], each["message"])
            for each in records(server)
            if "journal" in each.get("what", "")
        ]
    assert [level for level, _ in found] == ["error", "warning"]
    assert "disk is full" in found[0][1]
    assert re.fullmatch(r"the journal works again after [\d.]+ s", found[1][1])


def large(number: int) -> dict[str, Any]:
    event = reading(100 + number, "x", 40)
    event["data"]["padding"] = "x" * 200_000
    return event


def test_a_gateway_link_that_breaks_is_told_once_and_when_it_is_back(tmp_path: Path) -> None:
    """Costs two starts of a broker, and the time that a link takes to come back."""
    broker = Redis()
    try:
        broker.start()
    except MissingServerError as error:
        skip_as_missing(str(error))
    try:
        server = ServerProcess(
            tmp_path,
            '[log]\nformat = "json"\n[gateway]\nname = "inlet"\n[[service]]\nname = "cars"\n'
            f'kind = "redis"\nurl = "{broker.url}"\naddress = "traffic"\n',
        )
        broker.pause()
        awaited(server, "service `cars` has failed")
        time.sleep(2.5)
        broker.resume()
        awaited(server, "service `cars` works again", 60)
        assert server.stop() == 0
    finally:
        broker.stop()
    told = [each["message"] for each in records(server) if "cars" in each.get("what", "")]
    assert len(told) == 2, told
