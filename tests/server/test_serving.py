"""The file of a server and its process: every problem at once, signals, reloading, the demo."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import pytest

from ensue.errors import UsageError
from ensue.server.settings import read_settings
from tests.server.live import RULES, ServerProcess, serving, settings
from tests.servers.forking import completed


def test_every_problem_of_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "ensue.toml"
    file.write_text(
        """# a server
[server]
listen = "0.0.0.0:8420"
lsiten = "x"
lateness = "soon"
console = "yes"

[histroy]
url = "memory:"

[limits]
subscribers = 0

[[library]]
name = "9lives"
file = "missing.cor"

[[token]]
name = "t"
roles = ["publish", "drive"]
secret = "short"

[[token]]
roles = ["admin"]
secret = "${env:NO_SUCH_VARIABLE_HERE}"
"""
    )
    with pytest.raises(UsageError) as told:
        read_settings(file)
    lines = str(told.value).splitlines()

    assert [line.removeprefix(f"{file}:").partition(":")[0] for line in lines] == [
        "3", "4", "5", "6", "8", "12", "15", "16", "20", "23", "25",
    ]  # fmt: skip
    assert "did you mean `listen`" in lines[1]
    assert "did you mean `history`" in lines[4]
    assert "subscribers" in lines[5]
    assert "there is no file" in lines[7]
    assert "needs a key `name`" in lines[9]
    assert "NO_SUCH_VARIABLE_HERE" in lines[10]


def test_libraries_and_secrets_are_among_the_problems(tmp_path: Path) -> None:
    (tmp_path / "wrong.cor").write_text(
        "eventtype A { attribute lnog n; };\nA correlation X (B b)\n"
    )
    (tmp_path / "binary.cor").write_bytes(b"\xff\xfe")
    (tmp_path / "good.cor").write_text(RULES)
    file = tmp_path / "ensue.toml"
    file.write_text(
        """[server]
lateness = "soon"
[[library]]
file = "good.cor"
[[library]]
name = "good"
file = "good.cor"
[[library]]
name = "wrong"
file = "wrong.cor"
[[library]]
name = "binary"
file = "binary.cor"
[[token]]
name = "a"
roles = ["publish"]
secret = "${env:NO_SUCH_VARIABLE_HERE}"
[[token]]
name = "b"
roles = ["publish"]
secret = "${file:/no/such/file}"
[gateway]
name = "x"
[[service]]
name = "cars"
kind = "mqtt"
url = "mqtt://user:${env:NO_SUCH_PASSWORD}@127.0.0.1"
address = "cars"
"""
    )
    with pytest.raises(UsageError) as told:
        read_settings(file)
    text = str(told.value)
    begins = f"{file}:"
    lines = [line.removeprefix(begins) for line in text.splitlines() if line.startswith(begins)]

    # One of each: a secret that is not there is not told as too short, too.
    assert [line.partition(":")[0].strip() for line in lines] == [
        "2", "3", "10", "13", "17", "21", "[[service]] 1 url",
    ]  # fmt: skip
    assert "library `wrong` has 2 errors" in text
    assert "wrong.cor:1:25: error" in text
    assert "= did you mean `long`?" in text
    assert "binary.cor:1: the file is not UTF-8" in text
    assert "NO_SUCH_VARIABLE_HERE" in text
    assert "NO_SUCH_PASSWORD" in text


def test_a_reload_with_one_wrong_library_changes_none(tmp_path: Path) -> None:
    names = ("first", "second")
    for name in names:
        (tmp_path / f"{name}.cor").write_text(RULES)
    tables = "".join(f'[[library]]\nname = "{each}"\nfile = "{each}.cor"\n' for each in names)
    server = ServerProcess(tmp_path, tables)
    (tmp_path / "first.cor").write_text(RULES.replace("> 60", "> 70"))
    (tmp_path / "second.cor").write_text("eventtype")
    server.process.send_signal(signal.SIGHUP)
    _wait_for(server, "not reloaded")
    libraries = httpx.get(f"{server.url}/v1/libraries").json()

    assert [each["version"] for each in libraries] == [1, 1]
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[server]\nlisten = "0.0.0.0:1"', "there is no `[[token]]`"),
        (
            '[server]\nlisten = "0.0.0.0:1"\n[[token]]\nname = "a"\nroles = ["admin"]\n'
            'secret = "0123456789abcdef"',
            "certificate",
        ),
        ('[server]\nlisten = "8420"', "is no address"),
        ("[server\n", ":1:8: no TOML"),
        ('[server]\ncertificate = "x.pem"', "go together"),
        ("server = 1", "is a table"),
        ("[library]", "there may be several"),
    ],
)
def test_what_a_file_may_not_say(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "ensue.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r".*") as told:
        read_settings(file)
    assert words in str(told.value)


def test_secrets_come_by_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSUE_TEST_TOKEN", "from-the-environment-0123")
    (tmp_path / "secret.txt").write_text("from-a-file-0123456789\n")
    file = tmp_path / "ensue.toml"
    file.write_text(
        '[[token]]\nname = "a"\nroles = ["admin"]\nsecret = "${env:ENSUE_TEST_TOKEN}"\n'
        f'[[token]]\nname = "b"\nroles = ["publish"]\nsecret = "${{file:{tmp_path}/secret.txt}}"\n'
    )
    found = read_settings(file)
    assert [each.secret for each in found.tokens] == [
        "from-the-environment-0123",
        "from-a-file-0123456789",
    ]


def test_only_the_tables_of_a_gateway_mean_only_a_gateway(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[gateway]\nname = "roadside"\n[[service]]\nname = "cars"\nkind = "mqtt"\n')
    alone = read_settings(file)
    assert not alone.hosts_api
    assert alone.gateway["service"][0]["name"] == "cars"
    file.write_text(file.read_text() + "[server]\n")
    assert read_settings(file).hosts_api


def test_libraries_of_the_file_run_and_sighup_reads_it_again(tmp_path: Path) -> None:
    (tmp_path / "heat.cor").write_text(RULES)
    server = ServerProcess(tmp_path, '[[library]]\nname = "heat"\nfile = "heat.cor"\n')
    assert [each["rule"] for each in httpx.get(f"{server.url}/v1/rules").json()] == ["Rise"]

    (tmp_path / "heat.cor").write_text(RULES.replace("Rise", "Risen"))
    server.process.send_signal(signal.SIGHUP)
    _wait_for(server, "reloaded: `heat`")
    assert [each["rule"] for each in httpx.get(f"{server.url}/v1/rules").json()] == ["Risen"]

    (tmp_path / "heat.cor").write_text("eventtype")
    server.process.send_signal(signal.SIGHUP)
    _wait_for(server, "not reloaded")
    assert httpx.get(f"{server.url}/v1/rules").json()[0]["rule"] == "Risen"
    assert server.stop() == 0


def _wait_for(server: ServerProcess, words: str) -> None:
    limit = time.monotonic() + 20
    while words not in server.errors.read_text():
        assert time.monotonic() < limit, server.errors.read_text()
        time.sleep(0.02)


def test_a_port_that_is_taken_is_told_without_a_traceback(tmp_path: Path) -> None:
    with serving(settings()) as live:
        port = live.url.rpartition(":")[2]
        file = tmp_path / "ensue.toml"
        file.write_text(f'[server]\nlisten = "127.0.0.1:{port}"\n')
        ended = completed(["serve", str(file)], tmp_path)
    assert ended.returncode == 2
    assert "cannot be listened on" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_a_file_there_is_a_demonstration() -> None:
    with serving(settings(demo=True, clock="wall")) as live:
        rules = {each["rule"] for each in live.client.get("/v1/rules").json()}
        assert rules == {"TooWarm", "LeftOpen", "WarmAfterDoor", "GuessedPassword"}
        limit = time.monotonic() + 10
        while live.client.get("/v1/figures").json()["events"] < 3:
            assert time.monotonic() < limit
            time.sleep(0.05)
        metrics = live.client.get("/metrics").text
    assert (
        'ensue_rule_outputs_total{channel="main",library="coldchain"' in metrics
        or "ensue_events_total" in metrics
    )
    assert read_settings(None).server.demo


def test_a_stop_ends_streams_and_loses_nothing(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    with httpx.stream("GET", f"{server.url}/v1/events", timeout=20) as stream:
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        for _ in stream.iter_raw():
            pass
    assert server.process.wait(20) == 0
    assert time.monotonic() - begun < 8


def test_sighup_takes_tokens_and_names_what_needs_a_restart(tmp_path: Path) -> None:
    token = '[[token]]\nname = "a"\nroles = ["admin"]\nsecret = "{}"\n'
    old, new = "an-old-secret-of-the-file", "a-new-secret-of-the-file-1"
    server = ServerProcess(tmp_path, token.format(old))
    assert _status(server, old) == 200
    assert _status(server, new) == 401
    text = server.config.read_text().replace(old, new).replace('"events"', '"wall"')
    server.config.write_text(text)
    server.process.send_signal(signal.SIGHUP)
    _wait_for(server, "restart for the changes of `[server]`")
    assert _status(server, old) == 401
    assert _status(server, new) == 200
    server.config.write_text("[server]\nlisten = 3\n")
    server.process.send_signal(signal.SIGHUP)
    _wait_for(server, "not reloaded")
    assert _status(server, new) == 200
    assert server.stop() == 0
    assert new not in server.errors.read_text()


def _status(server: ServerProcess, secret: str) -> int:
    headers = {"Authorization": f"Bearer {secret}"}
    return httpx.get(f"{server.url}/v1/rules", headers=headers).status_code
