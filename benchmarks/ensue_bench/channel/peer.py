"""The other process of a measurement, linked to the channel that is measured.

`other_process` starts this module in a process of its own and tells it when to begin. That process
prints `ready` once it is linked and `done` once it has supplied all of its events.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ensue.channel import Channel, build
from ensue_bench.channel.pace import CONSUMING, PAUSE_OF_TWO, SUPPLYING, supply


@dataclass(frozen=True)
class PeerRole:
    """The role of the other process: `supply` events and consume them, or only `listen`."""

    role: str
    suppliers: int = 0
    consumers: int = 0
    events: int = 0

    @property
    def arguments(self) -> list[str]:
        return [self.role, *map(str, (self.suppliers, self.consumers, self.events))]


class Other:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def wait(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def other_process(channel: Channel, peer: PeerRole) -> Iterator[Other]:
    """Another process, linked to a channel of this process until the block ends."""
    _, port = channel.federation.listen()
    with subprocess.Popen(
        [sys.executable, "-m", "ensue_bench.channel.peer", str(port), *peer.arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            other = Other(process)
            other.wait()
            while not channel.federation.remote.is_wanted(_type_of(peer), None):
                time.sleep(0.001)
            yield other
        finally:
            assert process.stdin is not None
            process.stdin.close()


def _type_of(peer: PeerRole) -> str:
    return "Notify" if peer.role == "supply" else "High"


def main(port: int, peer: PeerRole) -> None:
    _take_another_processor()
    channel = build("full", "far").dispatching("reactive", real_time=True).done()
    if peer.role == "supply":
        for number in range(peer.consumers):
            channel.consumers.connect(f"c{number}", lambda _: None, "Notify", priority=CONSUMING)
    else:
        channel.consumers.connect("high", lambda _: None, "High")
        channel.consumers.connect("low", lambda _: None, "Low")
    channel.federation.connect("127.0.0.1", port).wait_until_connected()
    gc.freeze()
    with channel.in_real_time(SUPPLYING):
        print("ready", flush=True)
        if sys.stdin.readline():
            supply(channel, "far", peer.suppliers, peer.events, PAUSE_OF_TWO)
            print("done", flush=True)
            sys.stdin.read()
    channel.close()


def _take_another_processor() -> None:
    """Leave the processor on which the other side's channel runs, if there is another."""
    if hasattr(os, "sched_getaffinity") and len(cores := os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(0, cores - {max(cores)})


if __name__ == "__main__":
    main(int(sys.argv[1]), PeerRole(sys.argv[2], *map(int, sys.argv[3:])))
