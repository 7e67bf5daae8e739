"""The progress bar of a long run, on the standard error if that is a terminal.

It shows the share that is done, events a second, the remaining time and the outputs so far, and
disappears at the end. If the outputs go to the same terminal there is no bar, since the outputs
themselves show the progress.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from ensue.cli.terminal import console

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_EVENTS_A_STEP = 256

Read = TypeVar("Read")


@dataclass
class ProgressDisplay:
    """The bars of one run, or nothing to show.

    Readers of files call `reading`. `running` passes events through and counts them; `counted` sets
    the number of events and outputs so far.
    """

    reading: Callable[[int, int | None], None] | None = None
    bars: Bars | None = None
    task: Any = None
    began: float = 0.0

    def running(self, events: Sequence[Read]) -> Iterator[Read]:
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
