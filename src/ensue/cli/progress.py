"""How far a long run has come: a bar on the standard error, if that is a terminal.

It shows the share that is done, events a second, the time that is left and the outputs so far, and
goes away when it is done. While outputs go to the same screen there is none, for these show by
themselves that something is happening.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from ensue.cli.terminal import console
from ensue.events.event import Event

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_EVENTS_A_STEP = 256


@dataclass
class ProgressDisplay:
    """`reading` is for readers of files to call; `running` watches events on their way through,
    and `counted` is told how many events were run, and how many outputs there are."""

    reading: Callable[[int, int | None], None] | None = None
    bars: Bars | None = None
    task: Any = None
    began: float = 0.0

    def running(self, events: Sequence[Event]) -> Iterator[Event]:
        if self.bars is None:
            yield from events
            return
        task = self.bars.add_task("running", total=len(events), told="")
        for done, event in enumerate(events, 1):
            yield event
            if done % _EVENTS_A_STEP == 0:
                self.bars.update(task, completed=done)
        self.bars.update(task, completed=len(events))

    def counted(self, events: int, outputs: int) -> None:
        if self.bars is not None:
            seconds = max(monotonic() - self.began, 1e-6)
            told = f"{events / seconds:,.0f} events/s, {outputs:,} outputs"
            self.bars.update(self.task, told=told)


@contextmanager
def progress_bars(outputs_on_screen: bool) -> Iterator[ProgressDisplay]:
    if not sys.stderr.isatty() or (outputs_on_screen and sys.stdout.isatty()):
        yield ProgressDisplay()
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    with Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[told]}"),
        console=console(True),
        transient=True,
    ) as bars:
        task = bars.add_task("reading", total=None, told="")

        def reading(done: int, total: int | None) -> None:
            bars.update(task, completed=done, total=total)

        yield ProgressDisplay(reading, bars, task, monotonic())
