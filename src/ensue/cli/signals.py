"""Ctrl-C and SIGTERM during a run.

Inside the block a first signal is only noted, so that the run can end in order: the present record
is read completely, and all outputs are written. A second signal ends the process as usual.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def noted_signals() -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether a signal has come."""
    asked = False
    before: dict[signal.Signals, Any] = {}

    def note(number: int, _: FrameType | None) -> None:
        nonlocal asked
        asked = True
        # The second signal has its usual effect.
        signal.signal(number, before[signal.Signals(number)])

    for each in SIGNALS:
        before[each] = signal.getsignal(each)
    try:
        for each in SIGNALS:
            signal.signal(each, note)
    except ValueError:
        # Only the main thread can set handlers.
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        for each in SIGNALS:
            signal.signal(each, before[each])
