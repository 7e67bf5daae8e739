"""Gateways as processes of their own, started with the command and ended by signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0


class Serving:
    """`ensue serve` over a TOML file."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self.errors = config.with_suffix(".err")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ensue", "serve", str(self.config)],
                stderr=errors,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )
        self.wait_ready()

    def wait_ready(self) -> None:
        until = time.monotonic() + PATIENCE
        while "ready" not in self.said.splitlines():
            assert self.process is not None
            assert self.process.poll() is None, self.said
            assert time.monotonic() < until, f"not ready: {self.said}"
            time.sleep(0.05)

    @property
    def said(self) -> str:
        return self.errors.read_text("utf-8")

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(config: Path, text: str) -> Iterator[Serving]:
    config.write_text(text, "utf-8")
    served = Serving(config)
    served.start()
    try:
        yield served
    finally:
        if served.process is not None and served.process.poll() is None:
            served.kill()
