"""Metrics, and what `deploy/monitoring` makes of them in the real Prometheus."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from ensue.version import __version__
from tests.server.live import RULES, ServerProcess, reading, serving, settings
from tests.servers.programs import MissingServerError, free_port, program, skip_as_missing

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
TOKEN = "a-token-of-enough-characters"
SETTINGS = f"""
[[token]]
name = "boss"
roles = ["admin"]
secret = "{TOKEN}"

[gateway]
name = "inlet"

[[service]]
name = "pipe"
kind = "memory"
"""
PLAIN = {"Content-Type": "text/plain"}


def client_of(server: ServerProcess) -> httpx.Client:
    return httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30
    )


def figures(client: httpx.Client) -> dict[str, float]:
    """Each line of the metrics by its name and labels."""
    text = client.get("/metrics").text
    lines = [each for each in text.splitlines() if not each.startswith("#")]
    return {name: float(value) for name, _, value in (each.rpartition(" ") for each in lines)}


def worked(client: httpx.Client) -> None:
    client.put("/v1/libraries/heat", content=RULES, headers=PLAIN).raise_for_status()
    events = [reading(n, f"s{n % 5}", 20.0 if n // 5 % 2 else 70.0) for n in range(100)]
    client.post("/v1/events", json=events).raise_for_status()
    client.get("/nothing")


def test_build_process_requests_and_refused_logins_are_counted(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, SETTINGS.partition("[gateway]")[0])
    with client_of(server) as client:
        worked(client)
        for token in ("", "Bearer a-token-that-nobody-has"):
            httpx.get(f"{server.url}/v1/rules", headers={"Authorization": token} if token else {})
        httpx.request("BREW", f"{server.url}/health")
        found = figures(client)
    assert server.stop() == 0

    (build,) = [each for each in found if each.startswith("ensue_build_info")]
    assert f'version="{__version__}"' in build
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"):
        assert found[name] > 0
    assert abs(found["process_start_time_seconds"] - time.time()) < 120
    assert found['ensue_requests_total{method="GET",status="404"}'] == 1
    assert found['ensue_requests_total{method="GET",status="401"}'] == 2
    assert found['ensue_requests_total{method="POST",status="200"}'] == 1
    assert found['ensue_requests_total{method="other",status="400"}'] == 1
    assert found['ensue_refused_logins_total{reason="missing"}'] == 1
    assert found['ensue_refused_logins_total{reason="unknown"}'] == 1
    assert found["ensue_ready"] == 1


def test_all_counters_begin_at_zero_with_the_process(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, SETTINGS.partition("[gateway]")[0])
    with client_of(server) as client:
        worked(client)
        before = figures(client)
    server.kill()
    server = ServerProcess(tmp_path, SETTINGS.partition("[gateway]")[0])
    with client_of(server) as client:
        after = figures(client)
        client.post("/v1/events", json=[reading(200, "x", 20), reading(201, "x", 70)])
        later = figures(client)
        rules = client.get("/v1/rules").json()
    assert server.stop() == 0

    counters = [each for each in after if "_total" in each and not each.startswith("process_")]
    counted = {each for each in counters if after[each] and "requests" not in each}
    assert counted == set()
    rule = 'ensue_rule_outputs_total{channel="main",library="heat",rule="Rise"}'
    assert (before[rule], after[rule], later[rule]) == (45, 0, 1)
    # What a person is shown counts on.
    assert rules[0]["outputs"] == 46


def broken(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_health_tells_reasons_to_those_with_a_token_only(tmp_path: Path) -> None:
    token = {"name": "boss", "secret": TOKEN, "roles": ["admin"]}
    with serving(settings(tmp_path / "data", tokens=[token])) as live:
        live.client.headers["Authorization"] = f"Bearer {TOKEN}"
        journal = live.station.journal
        working = journal.append, journal.set_mark
        journal.append = journal.set_mark = broken
        live.client.post("/v1/events", json=reading(300, "a", 20))
        told = live.client.get("/health")
        public = [httpx.get(f"{live.url}{path}") for path in ("/health", "/ready")]
        journal.append, journal.set_mark = working

    assert told.status_code == 503
    assert "journal.db" in told.json()["detail"]
    for answer in public:
        assert answer.status_code == 503
        for word in ("journal", str(tmp_path), "main", "disk"):
            assert word not in answer.text


# --- in the real programs -----------------------------------------------------------------------


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[httpx.Client]:
    """The real Prometheus, with the files of `deploy/monitoring`."""
    try:
        command = program("prometheus")
    except MissingServerError as error:
        skip_as_missing(str(error))
    config = (MONITORING / "prometheus.yml").read_text()
    config = config.replace("127.0.0.1:8420", target).replace(
        "scrape_interval: 15s", "scrape_interval: 1s"
    )
    (folder / "prometheus.yml").write_text(config)
    (folder / "alerts.yml").write_text((MONITORING / "alerts.yml").read_text())
    (folder / "ensue.token").write_text(TOKEN)
    port = free_port()
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(command, f"--config.file={folder}/prometheus.yml"),
                *(f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{port}"),
            ],
            stdout=log,
            stderr=log,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
            yield client
    finally:
        process.terminate()
        process.wait(30)


def asked(client: httpx.Client, path: str, **parameters: str) -> Any:
    answer = client.get(f"/api/v1/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def expressions() -> list[tuple[str, str]]:
    """Title and query of each panel of the dashboard, with what Grafana puts in for variables."""
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    found = [
        (each["title"], target["expr"]) for each in panels for target in each.get("targets", ())
    ]
    values = {"$instance": ".*", "$channel": ".*", "$__rate_interval": "5s"}
    return [(title, re.sub(r"\$\w+", lambda name: values[name[0]], expr)) for title, expr in found]


def test_the_dashboard_and_the_alerts_work_on_what_a_server_tells(tmp_path: Path) -> None:
    """Costs a start of Prometheus, and the seconds until rates can be told."""
    server = ServerProcess(tmp_path, SETTINGS)
    with client_of(server) as ensue, prometheus(tmp_path, server.url.partition("//")[2]) as client:
        worked(ensue)
        limit = time.monotonic() + 60
        empty = {"waiting for Prometheus"}
        while empty:
            assert time.monotonic() < limit, empty
            time.sleep(1)
            try:
                found = {each: asked(client, "query", query=each[1]) for each in expressions()}
            except httpx.TransportError:
                continue
            empty = {title for (title, _), data in found.items() if not data["result"]}
            # A memory link drops nothing.
            empty -= {"Events that links could not pass on"}
        groups = asked(client, "rules")["groups"]
        targets = asked(client, "targets")["activeTargets"]
    assert server.stop() == 0

    assert [each["health"] for each in targets] == ["up"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}, rules
    assert {rule["state"] for rule in rules} == {"inactive"}


def test_what_alerts_and_panels_ask_for_is_told_by_a_server(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, SETTINGS)
    with client_of(server) as client:
        worked(client)
        told = client.get("/metrics").text
    assert server.stop() == 0

    alerts = (MONITORING / "alerts.yml").read_text()
    asked_for = "\n".join([alerts, *(expr for _, expr in expressions())])
    names = set(re.findall(r"\b(?:ensue|process)_[a-z_]+\b", asked_for))
    known = set(re.findall(r"# TYPE (\S+)", told))
    known |= {f"{each}_bucket" for each in known}
    assert names - known == set()


def test_promtool_finds_the_alerts_right(tmp_path: Path) -> None:
    try:
        promtool = program("promtool")
    except MissingServerError as error:
        skip_as_missing(str(error))
    server = ServerProcess(tmp_path, SETTINGS)
    with client_of(server) as client:
        worked(client)
        told = client.get("/metrics").text
    assert server.stop() == 0
    for words, given in (
        (["check", "rules", "alerts.yml"], None),
        (["test", "rules", "alerts.test.yml"], None),
        (["check", "metrics"], told),
    ):
        done = subprocess.run(
            [promtool, *words], cwd=MONITORING, input=given, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
