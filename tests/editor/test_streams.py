"""Messages of an editor that announce more than can be meant."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from tests.servers.programs import free_port

pytest.importorskip("pygls")


@pytest.mark.parametrize("length", ["99999999999", "9" * 40, "9" * 5_000])
def test_a_message_of_a_huge_length_ends_the_server_with_a_sentence(length: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ensue", "lsp"],
        input=f"Content-Length: {length}\r\n\r\n{{}}".encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    told = done.stderr.decode()
    assert "Traceback" not in told
    if len(length) < 4_000:
        assert done.returncode == 2
        assert "at most 67,108,864 are read" in told


def test_a_server_that_is_told_to_end_ends_well() -> None:
    def message(**members: object) -> bytes:
        body = msgspec.json.encode({"jsonrpc": "2.0", **members})
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    hello: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
    done = subprocess.run(
        [sys.executable, "-m", "ensue", "lsp"],
        input=message(id=1, method="initialize", params=hello)
        + message(id=2, method="shutdown")
        + message(method="exit"),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@contextmanager
def over_tcp() -> Iterator[tuple[subprocess.Popen[str], socket.socket, int]]:
    """A server that listens, and the editor that has connected to it."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "ensue", "lsp", "--tcp", str(port)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == f"listening on 127.0.0.1:{port}\n"
        with socket.create_connection(("127.0.0.1", port), timeout=30) as editor:
            yield process, editor, port
    finally:
        process.kill()
        process.wait()


def test_a_message_over_tcp_has_the_same_bound() -> None:
    with over_tcp() as (process, editor, _):
        editor.sendall(b"Content-Length: 10000000000\r\n\r\n{}")
        assert editor.recv(1) == b""
        assert process.wait(30) == 2
        assert process.stderr is not None
        assert "at most 67,108,864 are read" in process.stderr.read()


def test_only_one_editor_is_let_in() -> None:
    def knock(port: int) -> None:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()

    with over_tcp() as (_, _, port), pytest.raises(ConnectionError):
        knock(port)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "ensue", "lsp", "--tcp", port],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.returncode == 2
    assert f"port {port} of 127.0.0.1 cannot be listened on" in done.stderr
