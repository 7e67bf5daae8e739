"""Threads of a pool that sleep: they are woken, by work only, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.channel.making import builder, empty, event, eventually


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="the system sends no such signals")
def test_a_signal_does_not_end_a_thread_that_sleeps() -> None:
    channel, got = builder("full").dispatching("pool", threads=1).done(), empty()
    channel.consumers.connect("one", lambda _: got.append(threading.get_ident()), "Notify")
    channel.push(event())
    assert channel.settle()
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        signal.pthread_kill(got[0], signal.SIGUSR1)
        time.sleep(0.02)
    finally:
        signal.signal(signal.SIGUSR1, before)
    channel.push(event())

    assert channel.settle()
    assert got == [got[0]] * 2
    channel.close()


def test_a_pool_works_where_the_system_has_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "eventfd", raising=False)
    channel, got = builder("full").dispatching("pool", threads=3).done(), empty()
    channel.consumers.connect("one", got.append, "Notify")
    for _ in range(200):
        channel.push(event())

    assert channel.settle()
    assert len(got) == 200
    channel.close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors cannot be counted")
def test_a_pool_gives_its_descriptors_back() -> None:
    def open_ones() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = open_ones()
    channel = builder("full").dispatching("pool", threads=8).done()
    assert eventually(lambda: open_ones() > before) or not hasattr(os, "eventfd")
    channel.close()

    assert eventually(lambda: open_ones() <= before)
