"""Gateways as processes of their own that are there at once, for hunts that start very many.

A clean process has everything imported, and each gateway is forked from it. It runs what `ensue
serve` runs, and ends by signals.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

from ensue.federation.adapters import KINDS, adapter_class
from ensue.federation.serving import serve_gateway

from .tracing import trace

PATIENCE = 60.0
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])


def _imported() -> None:
    for kind in KINDS:
        adapter_class(kind)


_imported()


class Forked:
    """A gateway over a TOML file. `is_traced` lets it tell what it does (`tracing`)."""

    is_traced = False

    def __init__(self, config: Path) -> None:
        self.config = config
        self.errors = config.with_suffix(".err")
        self._process: BaseProcess | None = None

    @property
    def said(self) -> str:
        return self.errors.read_text("utf-8")

    def start(self) -> None:
        with self.errors.open("ab") as errors:
            errors.write(f"{time.time():.3f} starts\n".encode())
        before = self._readies()
        made = _context.Process(
            target=_serve, args=(str(self.config), str(self.errors), self.is_traced)
        )
        made.start()
        self._process = made
        until = time.monotonic() + PATIENCE
        while self._readies() == before:
            assert made.exitcode is None, self.said
            assert time.monotonic() < until, f"not ready: {self.said}"
            time.sleep(0.03)

    def _readies(self) -> int:
        return self.said.splitlines().count("ready")

    def stop(self) -> None:
        """SIGTERM: what is on its way arrives first."""
        self._signal(signal.SIGTERM)
        self._end()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._end()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.pid is not None:
            os.kill(self._process.pid, number)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.join(PATIENCE)
            assert process.exitcode is not None, f"does not end: {self.said}"


def _serve(config: str, errors: str, is_traced: bool) -> None:
    with open(errors, "ab") as told:
        os.dup2(told.fileno(), sys.stderr.fileno())
    if is_traced:
        trace()
    sys.exit(serve_gateway(config))
