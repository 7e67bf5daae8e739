"""Input of `ensue mcp` that no assistant sends: bounded, answered, and the server goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from ensue.assistants.lines import LONGEST_LINE

HELLO: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
PING = {"jsonrpc": "2.0", "id": "last", "method": "ping"}
TYPES = "eventtype A { attribute long n; };\neventtype Out {};\n"


class Talk:
    """What a server has answered, by the ids of requests, and how it ended."""

    def __init__(
        self,
        folder: Path,
        lines: Sequence[Any],
        *options: str,
        waits_for: Sequence[object] = ("last",),
        lingers: float = 0,
    ) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "ensue", "mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        told: list[bytes] = []
        noting = threading.Thread(target=lambda: told.extend(process.stderr or ()), daemon=True)
        noting.start()
        sending = threading.Thread(target=self._send, args=(process.stdin, lines), daemon=True)
        sending.start()
        watch = threading.Timer(60, process.kill)
        watch.start()
        self.answers: dict[object, Any] = {}
        for line in process.stdout:
            answer = json.loads(line)
            self.answers[answer.get("id")] = answer
            if all(each in self.answers for each in waits_for):
                break
        # While the input is open, it ends only by itself.
        has_all = all(each in self.answers for each in waits_for)
        self.code = process.poll() if has_all else process.wait(30)
        watch.cancel()
        time.sleep(lingers)
        process.kill()
        process.wait()
        noting.join(10)
        self.told = b"".join(told).decode()

    def _send(self, stdin: Any, lines: Sequence[Any]) -> None:
        try:
            for each in (*HELLO, *lines, PING):
                stdin.write(each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n")
            stdin.flush()
        except OSError:
            pass

    def text(self, number: object) -> str:
        return str(self.answers[number]["result"]["content"][0]["text"])


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_lines_that_are_no_requests_stop_nothing(tmp_path: Path) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    talk = Talk(
        tmp_path,
        [
            b"\xff\xfe no text\n",
            b"\n",
            b"null\n",
            deep + b"\n",
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + deep + b"}\n",
            {"jsonrpc": "2.0", "id": 2, "method": "no/such"},
            call(3, "no_such_tool"),
            call(4, "check", library=7),
            {"jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": {"uri": "file:/x"}},
        ],
    )

    assert "result" in talk.answers["last"]
    assert "error" in talk.answers[2]
    assert "Traceback" not in talk.told


def test_a_line_without_an_end_ends_the_server_with_a_sentence(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [b"x" * (2 * LONGEST_LINE)])

    assert talk.code == 2
    assert f"a message of more than {LONGEST_LINE:,} bytes" in talk.told
    assert "Traceback" not in talk.told


def endless() -> dict[str, Any]:
    """Arguments of `run` that make hundreds of millions of outputs."""
    rule = "Out correlation R (A a, every 1 s t) t by n { case true: push new Out {}; }"
    events = [{"type": "A", "time": "2020-01-01T00:00:00Z", "data": {"n": n}} for n in range(500)]
    events.append({"type": "A", "time": "2020-01-09T00:00:00Z", "data": {"n": 0}})
    return {"library": TYPES + rule, "events": events}


def test_a_rule_that_explodes_is_stopped_and_the_next_call_answered(tmp_path: Path) -> None:
    talk = Talk(
        tmp_path,
        [call(1, "run", **endless()), call(2, "check", library=TYPES)],
        "--deadline",
        "2s",
        waits_for=(1, 2),
    )

    assert "was stopped after 2 s" in talk.text(1)
    assert not talk.answers[2]["result"].get("isError")


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="processes are not shown as files")
def test_a_tool_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    """The server answers `last` at once, and is killed when the tool has been at work a while."""
    Talk(tmp_path, [call(1, "run", **endless())], "--deadline", "300s", lingers=5)

    until = time.monotonic() + 30
    while (left := _processes_in(tmp_path)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def _processes_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # Processes come and go, and those of others are not shown.
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append(process.name)
    return found
