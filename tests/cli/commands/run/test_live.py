"""`ensue run --follow` and `--live`: as a process, with real files, pipes, clocks and signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ensue, event

SILENCE = """
eventtype Beat { attribute string host; };
eventtype Down { attribute string host; };
Down correlation Silent (Beat beat) l:(beat ; timeout(1 s)) unless beat by host
{
    case l: push new Down { host = beat.host };
}
"""

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def call(*arguments: object) -> subprocess.Popen[bytes]:
        texts = [str(argument) for argument in arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-m", "ensue", "run", *texts], stdin=pipe, stdout=pipe, stderr=pipe
        )
        started.append(process)
        return process

    yield call
    for each in started:
        each.kill()
        each.wait()


def beat(host: str) -> bytes:
    members: dict[str, Any] = {"id": host, "source": "rack", "type": "Beat", "data": {"host": host}}
    members["time"] = datetime.now(UTC).isoformat()
    return json.dumps(members).encode() + b"\n"


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_growing_file_is_followed_until_a_signal_and_all_is_written(
    start: Start, rules: Path, tmp_path: Path, how: signal.Signals
) -> None:
    log, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    log.write_text(event(1, "Failed", 0) + "\n")
    process = start(rules, "-e", log, "--follow", "--out", out)
    with log.open("a") as file:
        file.write(event(2, "Done", 1) + "\n")

    # Written as soon as it is found, not at the end.
    wait_for(lambda: out.exists() and out.stat().st_size > 0)
    process.send_signal(how)
    _, err = process.communicate(timeout=30)

    assert process.returncode == 0
    assert err.decode() == f"2 events read; 1 output in `{out}`\n"
    assert [json.loads(each)["trigger"] for each in out.read_text().splitlines()] == ["2"]


def test_what_waits_to_be_put_in_order_is_read_at_the_end(
    start: Start, rules: Path, tmp_path: Path
) -> None:
    log, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    settled = [event(1, "Failed", 0), event(2, "Done", 1)]
    log.write_text("\n".join([*settled, event(4, "Done", 600), event(3, "Failed", 599), ""]))
    process = start(rules, "-e", log, "--follow", "--lateness", "2min", "--out", out)

    wait_for(lambda: out.exists() and out.stat().st_size > 0)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)

    assert [json.loads(each)["trigger"] for each in out.read_text().splitlines()] == ["2", "4"]
    assert b"4 events read; 2 outputs" in err


def test_silence_is_noticed_by_the_clock_of_this_machine(start: Start, tmp_path: Path) -> None:
    library = tmp_path / "silence.cor"
    library.write_text(SILENCE)
    process = start(library, "-e", "-", "--live")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(beat("a"))
    process.stdin.flush()

    # The pipe stays open, and nothing comes.
    down = json.loads(process.stdout.readline())

    assert (down["type"], down["trigger"], down["data"]) == ("Down", "timer", {"host": "a"})
    process.stdin.write(beat("b"))
    process.stdin.close()
    process.wait(30)
    assert b"2 events read; 1 output" in process.stderr.read()  # type: ignore[union-attr]


def test_without_live_the_clock_of_this_machine_moves_nothing(ensue: Ensue, tmp_path: Path) -> None:
    library = tmp_path / "silence.cor"
    library.write_text(SILENCE)
    old = beat("a").replace(datetime.now(UTC).isoformat()[:4].encode(), b"2020")

    assert ensue("run", library, "-e", "-", stdin=old).outputs == []
    assert ensue("run", library, "-e", "-", "--live", stdin=old).outputs == []


@pytest.mark.parametrize("engine", ["batch", "spark"])
@pytest.mark.parametrize("option", ["--follow", "--live"])
def test_engines_that_read_all_at_once_are_refused(
    ensue: Ensue, rules: Path, events: Path, engine: str, option: str
) -> None:
    answer = ensue("run", rules, "-e", events, option, "--engine", engine)

    assert answer.code == 2
    assert (
        f"`{option}` needs an engine that reads event by event, and `{engine}` does not"
        in answer.err
    )
