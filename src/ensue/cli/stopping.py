"""A run that a person or a system ends: by Ctrl-C, or by SIGTERM.

Inside of the block both are only noted, so that what is being read is read to its end and what was
found is written. A second signal ends the process as usual.
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
    """A function that says whether the end was asked for."""
    asked = False
    before: dict[signal.Signals, Any] = {}

    def note(number: int, _: FrameType | None) -> None:
        nonlocal asked
        asked = True
        # Once more, and it is not waited for.
        signal.signal(number, before[signal.Signals(number)])

    for each in SIGNALS:
        before[each] = signal.getsignal(each)
    try:
        for each in SIGNALS:
            signal.signal(each, note)
    except ValueError:
        # Not in the main thread, which alone gets signals.
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        for each in SIGNALS:
            signal.signal(each, before[each])
