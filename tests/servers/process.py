"""A server that tests start: a process with a temporary folder and a free port of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers.programs import UNPRIVILEGED, free_port

LONGEST_END = 30.0
"""How many seconds a process may take to end before it is killed."""


class Server:
    """One server, on the loopback interface. Subclasses say how it is started."""

    ending = signal.SIGTERM

    def __init__(self) -> None:
        self.folder = Path()
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def make_folder(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ensue-server-"))
        if os.getuid() == 0:
            shutil.chown(self.folder, UNPRIVILEGED)
        self.port = free_port()

    @property
    def user(self) -> str | None:
        """Whom the process runs as: a server refuses to be root, and need not be anybody."""
        return UNPRIVILEGED if os.getuid() == 0 else None

    def start_process(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start the process in a folder, with more variables than this one has."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=folder,
                user=self.user,
                env={**os.environ, **(environment or {})},
            )
        self.process = process
        return process

    @property
    def end_of_log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")[-2000:]

    def stop(self) -> None:
        self.pause()
        shutil.rmtree(self.folder, ignore_errors=True)

    def pause(self) -> None:
        """End the process; what it has stored stays."""
        if self.process is None:
            return
        self.process.send_signal(self.ending)
        try:
            self.process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
