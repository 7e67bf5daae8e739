"""Commands against a server: publish, tail, rules, top, and contexts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.live import RULES, Live, ServerProcess, reading, serving, settings
from tests.servers.forking import ForkedProcess, completed, forked


@pytest.fixture
def live() -> Iterator[Live]:
    with serving(settings()) as running:
        yield running


class Shell:
    """Runs `ensue` with a configuration folder of its own."""

    def __init__(self, folder: Path, live: Live | ServerProcess, **environment: str) -> None:
        self.folder = folder
        self.environment = {"ENSUE_URL": live.url, **environment}

    def begin(self, *words: str) -> ForkedProcess:
        """A command that is left running."""
        return forked(
            words, self.folder, environment={**os.environ, **self.environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __call__(
        self, *words: str, stdin: str = "", code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        homes = {"XDG_CONFIG_HOME": self.folder / "config", "XDG_STATE_HOME": self.folder / "state"}
        environment = {**os.environ, **{name: str(folder) for name, folder in homes.items()}}
        ended = completed(
            words, self.folder, environment={**environment, **self.environment}, stdin=stdin
        )
        assert ended.returncode == code, (ended.stdout, ended.stderr)
        assert "Traceback" not in ended.stderr
        return ended


@pytest.fixture
def ensue(tmp_path: Path, live: Live) -> Shell:
    (tmp_path / "heat.cor").write_text(RULES)
    return Shell(tmp_path, live)


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in events)


def test_publishing_a_file_a_pipe_and_a_single_event(ensue: Shell, live: Live) -> None:
    (ensue.folder / "events.jsonl").write_text(lines(reading(1, "a", 20), reading(2, "a", 70)))
    assert ensue("publish", "events.jsonl").stdout == "2 events published\n"
    assert ensue("publish", "events.jsonl").stdout == "0 events published, 2 sent before\n"
    piped = ensue("publish", "-", stdin=lines(reading(3, "a", 20), {"id": "x"}), code=1)
    assert piped.stdout == "1 event published, 1 rejected\n"
    assert "line 2: `source` must be" in piped.stderr
    ensue("publish", "--type", "Ping", "--data", '{"n": 1}')
    found = live.client.get("/v1/history", params={"filter": "type = 'Ping'"}).json()["events"]
    assert found[0]["data"] == {"n": 1}
    assert "is not valid JSON" in ensue("publish", "--type", "A", "--data", "{", code=2).stderr


def test_lines_of_a_pipe_are_sent_as_they_come(ensue: Shell, live: Live) -> None:
    with ensue.begin("publish", "-") as running:
        assert running.stdin is not None
        running.stdin.write("\n" + lines(reading(1, "a", 20)))
        running.stdin.flush()
        while live.client.get("/v1/figures").json()["events"] < 1:
            assert running.poll() is None
            time.sleep(0.02)
        running.stdin.write("\nno event\n" + lines(reading(2, "a", 70)))
        running.stdin.close()
        assert running.wait(30) == 1
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.read() == "2 events published, 1 rejected\n"
        # Lines are counted as the input has them, empty ones too.
        assert "line 4: " in running.stderr.read()


def test_all_rejected_events_of_a_long_file_are_counted(ensue: Shell, live: Live) -> None:
    (ensue.folder / "bad.jsonl").write_text(lines(*({"id": f"x{n}"} for n in range(1_300))))
    told = ensue("publish", "bad.jsonl", code=1)
    assert told.stdout == "0 events published, 1300 rejected\n"
    assert "and 990 more" in told.stderr


def test_a_server_that_restarts_is_waited_for(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    ensue = Shell(tmp_path, server)
    with (
        ensue.begin("publish", "-") as publishing,
        ensue.begin("tail", "--short", "type = 'Reading'") as tailing,
    ):
        assert publishing.stdin is not None
        assert publishing.stdout is not None
        assert tailing.stdout is not None
        assert tailing.stderr is not None
        publishing.stdin.write(lines({**reading(0, "a", 20), "type": "Other"}))
        publishing.stdin.flush()
        wait_for(f"{server.url}/v1/figures", lambda found: found["subscribers"] == 1)
        wait_for(f"{server.url}/v1/figures", lambda found: found["events"] == 1)
        # Nothing has been delivered yet, and the events come while nobody listens.
        server.kill()
        publishing.stdin.write(lines(reading(1, "a", 20), reading(2, "a", 70)))
        publishing.stdin.close()
        time.sleep(0.5)
        again = ServerProcess(tmp_path, port=int(server.url.rpartition(":")[2]))
        assert publishing.wait(30) == 0
        assert publishing.stdout.read() == "3 events published\n"
        shown = [tailing.stdout.readline() for _ in range(2)]
        assert ["event  Reading" in each for each in shown] == [True, True]
        tailing.send_signal(signal.SIGINT)
        assert tailing.wait(30) == 130
        told = tailing.stderr.read()
        assert "the connection is lost" in told
        assert "connected again" in told
        assert "Traceback" not in told
        again.stop()


def wait_for(url: str, is_there: Callable[[Any], bool]) -> None:
    limit = time.monotonic() + 20
    while not is_there(httpx.get(url).json()):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_rules_are_put_listed_tried_and_put_back(ensue: Shell, live: Live) -> None:
    assert "heat version 1 runs\n  added: Rise" in ensue("rules", "put", "heat", "heat.cor").stdout
    live.publish([reading(n, "a", 20 if n % 2 else 50) for n in range(10)])
    live.publish([reading(10, "a", 70)])
    (ensue.folder / "heat.cor").write_text(RULES.replace("> 60", "> 40"))
    tried = ensue("rules", "try", "heat", "heat.cor").stdout
    assert "5 outputs" in tried
    assert "Rise: 5 for 1 key  a (5)" in tried
    assert "1 in both, 4 more, 0 fewer" in tried
    changed = ensue("rules", "put", "heat", "heat.cor", "--note", "lower")
    assert "changed: Rise" in changed.stdout
    assert "lower" in ensue("rules", "versions", "heat").stdout
    assert "> 40" in ensue("rules", "get", "heat").stdout
    assert "version 3" in ensue("rules", "rollback", "heat", "1").stdout
    assert "> 60" in ensue("rules", "get", "heat").stdout
    listed = ensue("rules").stdout.splitlines()
    assert listed[1].split()[2:4] == ["heat", "Rise"]
    assert "is disabled" in ensue("rules", "disable", "heat").stdout
    assert "runs" in ensue("rules", "enable", "heat").stdout
    live.publish([reading(20, "b", 20)])
    assert "waits for `high`" in ensue("rules", "why", "heat", "Rise", "b").stdout
    ensue("rules", "delete", "heat")
    assert "there is no library `heat`" in ensue("rules", "get", "heat", code=2).stderr


def test_values_of_parameters_are_set_in_what_is_tried_and_put(ensue: Shell, live: Live) -> None:
    text = "parameter double hot = 60.0;" + RULES.replace("> 60", "> hot")
    (ensue.folder / "heat.cor").write_text(text)
    ensue("rules", "put", "heat", "heat.cor")
    live.publish([reading(1, "a", 20), reading(2, "a", 50)])

    assert "1 output" in ensue("rules", "try", "heat", "heat.cor", "--set", "hot=40").stdout
    assert "changed: Rise" in ensue("rules", "put", "heat", "heat.cor", "--set", "hot=40").stdout
    assert "hot = 40.0;" in live.client.get("/v1/libraries/heat").json()["text"]

    refused = ensue("rules", "put", "heat", "heat.cor", "--set", "hott=1", code=2)
    assert "no parameter `hott`; did you mean `hot`?" in refused.stderr


def test_what_others_have_put_is_not_replaced_unseen(ensue: Shell, live: Live) -> None:
    ensue("rules", "put", "heat", "heat.cor")
    others = RULES.replace("> 60", "> 65")
    plain = {"Content-Type": "text/plain"}
    path = "/v1/libraries/heat"
    live.client.put(path, content=others, params={"note": "less noise"}, headers=plain)
    (ensue.folder / "heat.cor").write_text(RULES.replace("> 60", "> 40"))

    refused = ensue("rules", "put", "heat", "heat.cor", code=1)

    removed = [each for each in refused.stdout.splitlines() if each.startswith("-")]
    assert any("> 65" in each for each in removed)
    assert "less noise" in refused.stderr
    assert "`--force`" in refused.stderr
    assert "> 65" in ensue("rules", "get", "heat").stdout
    # Now it has been seen.
    assert "version 3 runs" in ensue("rules", "put", "heat", "heat.cor").stdout


def test_a_library_of_that_name_is_replaced_by_force_alone(ensue: Shell, live: Live) -> None:
    live.put()
    (ensue.folder / "heat.cor").write_text(RULES.replace("> 60", "> 40"))

    assert "is not as you have seen it" in ensue("rules", "put", "heat", "heat.cor", code=1).stderr
    assert "version 2" in ensue("rules", "put", "heat", "heat.cor", "--force").stdout


def test_a_text_with_mistakes_is_shown_with_its_places(ensue: Shell) -> None:
    (ensue.folder / "heat.cor").write_text(RULES.replace("Reading low", "Raeding low"))
    shown = ensue("rules", "put", "heat", "heat.cor", code=1).stdout
    assert "did you mean `Reading`?" in shown
    assert "^" in shown


def test_tail_prints_what_comes_and_goes_on_after_an_id(ensue: Shell, live: Live) -> None:
    live.put()
    live.publish([reading(1, "a", 20), reading(2, "a", 70)])
    kept = ensue("tail", "--after", "0", "--limit", "3").stdout.splitlines()
    assert [json.loads(each)["type"] for each in kept] == ["Reading", "Reading", "Hot"]
    short = ensue("tail", "--library", "heat", "--after", "0", "--limit", "1", "--short").stdout
    assert "output Hot by Rise [a]" in short

    def publish_once_somebody_listens() -> None:
        while not live.station.feed.subscribers:
            time.sleep(0.02)
        live.publish([reading(3, "b", 20)])

    threading.Thread(target=publish_once_somebody_listens, daemon=True).start()
    fresh = ensue("tail", "sensor = 'b'", "--limit", "1").stdout
    assert json.loads(fresh)["id"] == "e3"
    wrong = ensue("tail", "celsius >", code=2).stderr
    assert "<filter>:1:" in wrong


def test_top_shows_figures_and_rules(ensue: Shell, live: Live) -> None:
    live.put()
    live.publish([reading(1, "a", 20), reading(2, "a", 70)])
    shown = ensue("top", "--once").stdout
    assert "heat/Rise" in shown
    assert "events" in shown


def test_contexts_name_servers_and_keep_no_token(tmp_path: Path) -> None:
    token = {"name": "t", "secret": "0123456789abcdef0123", "roles": ["admin"]}
    with serving(settings(tokens=[token])) as live:
        ensue = Shell(tmp_path, live, TEST_TOKEN="0123456789abcdef0123")
        del ensue.environment["ENSUE_URL"]
        ensue("context", "set", "here", "--server", live.url, "--token", "${env:TEST_TOKEN}")
        ensue("context", "set", "bare", "--server", live.url)
        assert f"* here  {live.url}" in ensue("context").stdout
        assert "no rule runs: `ensue rules put" in ensue("rules").stderr
        refused = ensue("rules", "--context", "bare", code=2).stderr
        assert "send a known token" in refused
        assert "0123456789abcdef" not in (tmp_path / "config/ensue/contexts.toml").read_text()
        plain = ensue("context", "set", "x", "--token", "plain", code=2)
        assert "${env:NAME}" in plain.stderr
        ensue("context", "use", "bare")
        ensue("rules", code=2)
        ensue("context", "remove", "bare")
        assert "no context `nope`" in ensue("top", "--once", "--context", "nope", code=2).stderr


def test_a_server_that_is_not_there_is_told(tmp_path: Path, live: Live) -> None:
    ensue = Shell(tmp_path, live)
    for words in (["rules"], ["tail"], ["top"], ["publish", "--type", "A"]):
        begun = time.monotonic()
        told = ensue(*words, "--url", "http://127.0.0.1:9", code=2).stderr
        assert "cannot be reached" in told
        assert "is `ensue serve` running there?" in told
        assert time.monotonic() - begun < 15
