"""How far a long run has come: bars on the standard error, if that is a terminal.

They go away when they are done. While outputs go to the same screen there are none, for these show
by themselves that something is happening.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensue.cli.terminal import console
from ensue.events.event import Event

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_EVENTS_A_STEP = 256


@dataclass(frozen=True)
class Progress:
    """`reading` is for `read_events` to call; `running` watches events on their way through."""

    reading: Callable[[int, int | None], None] | None = None
    bars: Bars | None = None

    def running(self, events: Sequence[Event]) -> Iterator[Event]:
        if self.bars is None:
            yield from events
            return
        task = self.bars.add_task("running", total=len(events))
        for done, event in enumerate(events, 1):
            yield event
            if done % _EVENTS_A_STEP == 0:
                self.bars.update(task, completed=done)
        self.bars.update(task, completed=len(events))


@contextmanager
def progress_bars(outputs_on_screen: bool) -> Iterator[Progress]:
    if not sys.stderr.isatty() or (outputs_on_screen and sys.stdout.isatty()):
        yield Progress()
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    with Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console(True),
        transient=True,
    ) as bars:
        task = bars.add_task("reading", total=None)

        def reading(done: int, total: int | None) -> None:
            bars.update(task, completed=done, total=total)

        yield Progress(reading, bars)
