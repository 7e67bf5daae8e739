"""Many hunts side by side, each in processes of its own, within a time for all of them.

In come orders and how many may run at once; out go lines as things happen, and whether anything was
found. A process that dies, or whose round does not come to an end, has found something too.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from .registry import again
from .rounds import Begun, Find, LeftOut, Message, Order, Tried, work

PATIENCE = 300.0
"""How long the last round of a hunt may go on after its time, in seconds."""
TO_END = 15.0
"""How long a process has to put away what it has started."""
BETWEEN_REPORTS = 20.0
LAST_LINES = 15

Say = Callable[[str], None]


@dataclass
class Track:
    """What has come of one order so far."""

    order: Order
    rounds: int = 0
    seed: int | None = None
    finds: int = 0
    left_out: str = ""
    tried: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.order.hunt.name

    def __str__(self) -> str:
        if self.left_out:
            return f"{self.name}: left out: {self.left_out}"
        tried = "".join(f", {count:,} {what}" for what, count in self.tried.items())
        finds = f", {self.finds} FOUND" if self.finds else ""
        return f"{self.name}: {self.rounds:,} rounds{tried}{finds}"


@dataclass
class Running:
    """A process with its track."""

    track: Track
    process: BaseProcess
    told: Connection
    output: Path
    until: float

    def end(self) -> None:
        """End the process and all that it has started: gently first."""
        group = self.process.pid
        assert group is not None
        self.process.terminate()
        self.process.join(TO_END)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        self.process.join()


def run(orders: Sequence[Order], at_once: int, say: Say, patience: float = PATIENCE) -> int:
    """How much was found."""
    tracks = [Track(order) for order in orders]
    waiting, running = deque(tracks), list[Running]()
    with TemporaryDirectory(prefix="ensue-hunts-") as folder, _ended(running):
        report = time.monotonic() + BETWEEN_REPORTS
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_start(waiting.popleft(), Path(folder), patience, say))
            for each in _ready(running):
                if not _hear(each, say):
                    running.remove(each)
            if time.monotonic() > report:
                for each in running:
                    say(f"... {each.track}")
                report = time.monotonic() + BETWEEN_REPORTS
    for track in tracks:
        say(str(track))
    return sum(track.finds for track in tracks)


@contextmanager
def _ended(running: list[Running]) -> Iterator[None]:
    try:
        yield
    finally:
        for each in running:
            each.end()


def _start(track: Track, folder: Path, patience: float, say: Say) -> Running:
    order = track.order
    # A process that was forked from a terminal's would share its threads' locks, Java's too.
    context = get_context("spawn")
    hears, tells = context.Pipe(duplex=False)
    output = folder / f"{track.name}.txt"
    process = context.Process(target=work, args=(order, tells, output))
    process.start()
    tells.close()
    length = "one round" if order.rounds == 1 else f"{order.seconds:.0f} s"
    length = f"{order.rounds} rounds" if (order.rounds or 0) > 1 else length
    say(f"{track.name}: seeds from {order.first_seed}, {length}: {order.hunt.aim}")
    seconds = order.seconds if order.rounds is None else 0.0
    return Running(track, process, hears, output, time.monotonic() + seconds + patience)


def _ready(running: Sequence[Running]) -> list[Running]:
    """Those that tell something, and those whose patience is over."""
    told = wait([each.told for each in running], timeout=1.0)
    now = time.monotonic()
    return [each for each in running if each.told in told or now > each.until]


def _hear(one: Running, say: Say) -> bool:
    """Take what a process tells; whether it goes on."""
    track = one.track
    if not one.told.poll():
        _found(track, track.seed, "the round does not come to an end", say)
        one.end()
        return False
    try:
        message: Message = one.told.recv()
    except EOFError:
        one.process.join()
        if one.process.exitcode:
            lines = one.output.read_text(errors="replace").splitlines()[-LAST_LINES:]
            ended = f"the process has ended with code {one.process.exitcode}"
            _found(track, track.seed, "\n".join([ended, *lines]), say)
        one.end()
        return False
    match message:
        case Begun(seed):
            track.rounds += 1
            track.seed = seed
        case Tried(counts):
            track.tried.update(counts)
        case Find(seed, text):
            _found(track, seed, text, say)
        case LeftOut(reason):
            track.left_out = reason
    return True


def _found(track: Track, seed: int | None, text: str, say: Say) -> None:
    track.finds += 1
    seed = track.order.first_seed if seed is None else seed
    say(f"\nFOUND by {track.name} with seed {seed}:\n{text.rstrip()}")
    say(f"again: {again(track.order.hunt, seed, track.order.faults)}\n")
