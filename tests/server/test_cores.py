"""Where the threads of a server run: on one core while they are busy, as long as it is theirs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from ensue.server import cores
from ensue.server.cores import OneCore

pytestmark = pytest.mark.skipif(
    len(getattr(os, "sched_getaffinity", lambda _: ())(0)) < 2, reason="there is one core only"
)


@pytest.fixture
def governor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    allowed = os.sched_getaffinity(0)
    yield Clock(monkeypatch)
    for each in threading.enumerate():
        os.sched_setaffinity(each.native_id or 0, allowed)


class Clock:
    """A governor whose seconds, processor time and waiting are given by the test."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = self.used = self.waited = 100.0
        patch.setattr(time, "monotonic", lambda: self.now)
        patch.setattr(time, "process_time", lambda: self.used)
        patch.setattr(cores, "_waited", lambda: self.waited)
        self.one = OneCore()

    def pass_second(self, used: float, waited: float = 0.0) -> int | None:
        self.now += 1.0
        self.used += used
        self.waited += waited
        self.one.look()
        return self.one.core


def test_a_busy_server_is_gathered_and_a_calm_one_spread(governor: Clock) -> None:
    allowed = os.sched_getaffinity(0)
    assert governor.pass_second(0.8) is None
    assert os.sched_getaffinity(0) == allowed
    core = governor.pass_second(1.2)
    assert core is not None
    assert os.sched_getaffinity(0) == {core}
    assert governor.pass_second(0.95, waited=0.5) == core
    assert governor.pass_second(0.3) is None
    assert os.sched_getaffinity(0) == allowed
    # Nobody else wanted the core, so that the next load is gathered at once.
    assert governor.pass_second(1.1) is not None


def test_a_core_that_others_want_is_left_for_longer_each_time(governor: Clock) -> None:
    first = governor.pass_second(1.2)
    assert governor.pass_second(0.5, waited=0.6) is None
    waits = []
    for _ in range(3):
        seconds = 1
        while (core := governor.pass_second(1.2)) is None:
            seconds += 1
        assert core != first
        first = core
        waits.append(seconds)
        assert governor.pass_second(0.5, waited=0.6) is None
    assert waits == [1, 2, 4]


def test_all_threads_are_moved(governor: Clock) -> None:
    ends = threading.Event()
    other = threading.Thread(target=ends.wait)
    other.start()
    core = governor.pass_second(1.0)
    assert os.sched_getaffinity(other.native_id or 0) == {core}
    governor.pass_second(0.1)
    assert len(os.sched_getaffinity(other.native_id or 0)) > 1
    ends.set()
    other.join()
