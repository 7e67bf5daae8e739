"""Commands of `ensue` as processes of their own that need not load what this process has loaded.

`forked` runs a command as `python -m ensue` does, in a process with its own streams, folder and
environment, which can be killed. It is forked from one helper that has loaded the package, so that
a start costs some milliseconds of the processor where the interpreter alone takes a second. The
helper ends with the process that has started it.

Run as a program, the module is that helper: it is handed file descriptors over a socket. For each
command it forks a keeper, which forks the command, tells its number, waits for it, and tells how
it has ended.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

LONGEST = 1 << 20
"""Bytes of the environment and the words of a command."""


class ForkedProcess:
    """A command that runs, with the part of the interface of `subprocess.Popen` that tests use."""

    def __init__(self, connection: socket.socket, pipes: Sequence[IO[str] | None]) -> None:
        self._connection = connection
        self._answers = connection.makefile("r")
        self.stdin, self.stdout, self.stderr = pipes
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(["ensue"], timeout or 0.0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def _end(self) -> None:
        self.returncode = int(self._answers.readline())
        self._answers.close()
        self._connection.close()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> ForkedProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.kill()
        for each in (self.stdin, self.stdout, self.stderr):
            if each is not None:
                each.close()
        self.wait()


class _Helper:
    """The helper of this process, started when the first command is."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.forking", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],
        )
        theirs.close()
        self._socket = ours
        atexit.register(self.end)

    def end(self) -> None:
        self._socket.close()
        self._process.wait()

    def begin(self, order: Mapping[str, Any], streams: Sequence[int]) -> socket.socket:
        ours, theirs = socket.socketpair()
        # The order goes over a file, since a message of a socket is not as long as it may be.
        with tempfile.TemporaryFile() as file, theirs:
            file.write(json.dumps(order).encode())
            file.flush()
            descriptors = [theirs.fileno(), file.fileno(), *streams]
            socket.send_fds(self._socket, [b"x"], descriptors)
        return ours


_helper: _Helper | None = None


def forked(
    words: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str] = os.environ,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
) -> ForkedProcess:
    """Run `ensue` with some words. A stream is a file descriptor, `PIPE` or `DEVNULL`."""
    global _helper
    if _helper is None:
        _helper = _Helper()
    given: list[int] = []
    pipes: list[IO[str] | None] = []
    opened: list[int] = []
    for stream, mode in ((stdin, "w"), (stdout, "r"), (stderr, "r")):
        pipe: IO[str] | None = None
        if stream == subprocess.PIPE:
            reading, writing = os.pipe()
            here, there = (writing, reading) if mode == "w" else (reading, writing)
            pipe = open(here, mode, encoding="utf-8")  # noqa: SIM115
            opened.append(there)
        elif stream == subprocess.DEVNULL:
            there = os.open(os.devnull, os.O_RDWR)
            opened.append(there)
        else:
            there = stream
        given.append(there)
        pipes.append(pipe)
    order = {"words": list(words), "folder": str(folder), "environment": dict(environment)}
    connection = _helper.begin(order, given)
    for each in opened:
        os.close(each)
    return ForkedProcess(connection, pipes)


def completed(
    words: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str] = os.environ,
    stdin: str = "",
    timeout: float = 60.0,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run`: the command's code and what it has written."""
    limit = time.monotonic() + timeout
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as errors,
    ):
        given.write(stdin)
        given.seek(0)
        streams = {"stdin": given.fileno(), "stdout": out.fileno(), "stderr": errors.fileno()}
        with forked(words, folder, environment=environment, **streams) as process:
            try:
                code = process.wait(limit - time.monotonic())
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        written = []
        for each in (out, errors):
            each.seek(0)
            written.append(each.read())
    return subprocess.CompletedProcess(list(words), code, *written)


# --- the helper ---------------------------------------------------------------------------------


def _help(orders: socket.socket) -> None:
    """Fork what is ordered until nobody can order any more. Returns in each command, too."""
    _load()
    # Keepers are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(orders, 1, 5)
        if not message:
            return
        if os.fork() == 0:
            orders.close()
            _keep(descriptors)
            return
        for each in descriptors:
            os.close(each)


def _load() -> None:
    import ensue.cli
    import ensue.remote
    import ensue.server.serving  # noqa: F401
    from ensue.cli.start.catalogue import LoadedCommands

    commands = LoadedCommands()
    for name in ("serve", "publish", "rules", "tail", "top", "context"):
        _ = commands[name]


def _keep(descriptors: Sequence[int]) -> None:
    """Fork a command and tell its number and its end. Returns in the command only."""
    connection = socket.socket(fileno=descriptors[0])
    with open(descriptors[1], "rb") as file:
        file.seek(0)
        order = json.load(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    number = os.fork()
    if number == 0:
        connection.close()
        _become(order, descriptors[2:])
        return
    for each in descriptors[2:]:
        os.close(each)
    connection.sendall(f"{number}\n".encode())
    _, status = os.waitpid(number, 0)
    with suppress(OSError):
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(order: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Give this process the streams, the folder, the environment and the words of a command."""
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf-8")  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", closefd=False),  # noqa: SIM115
        encoding="utf-8", errors="backslashreplace", line_buffering=True,
    )  # fmt: skip
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["ensue", *order["words"]]


def _run() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        parent = os.getpid()
        _help(orders)
    if os.getpid() != parent:
        from ensue.__main__ import main

        main()


if __name__ == "__main__":
    _run()
