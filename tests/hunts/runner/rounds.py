"""The rounds of one hunt in a process of its own: what the process does, and what it tells.

In come a hunt, its first seed and its time; out go messages through a connection: the seed of each
round as it begins, what a round has tried, what it has found, or why the hunt cannot run here. What
the process writes goes to a file, of which the end is shown where the process dies.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from .registry import Hunt


@dataclass(frozen=True)
class Order:
    """What one process is to do: `rounds` ends it earlier than its seconds would."""

    hunt: Hunt
    first_seed: int
    seconds: float
    rounds: int | None = None
    faults: Sequence[str] = ()
    most_finds: int = 3


@dataclass(frozen=True)
class Begun:
    seed: int


@dataclass(frozen=True)
class Tried:
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Find:
    seed: int
    text: str


@dataclass(frozen=True)
class LeftOut:
    reason: str


Message = Begun | Tried | Find | LeftOut


def work(order: Order, told: Connection, output: Path) -> None:
    """What the process does: it leads a group of its own, with all that it starts."""
    os.setsid()
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # Servers and brokers that a round has started end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Parts fail on purpose in many a hunt, and every failure is logged.
    logging.disable(logging.CRITICAL)
    try:
        play_rounds(order, told)
    except (KeyboardInterrupt, BrokenPipeError):
        return


def play_rounds(order: Order, told: Connection) -> None:
    end = time.monotonic() + order.seconds
    finds, seed = 0, order.first_seed
    while _goes_on(order, seed - order.first_seed, end) and finds < order.most_finds:
        told.send(Begun(seed))
        try:
            told.send(Tried(dict(order.hunt.play(seed, order.faults))))
        except pytest.skip.Exception as missing:
            told.send(LeftOut(str(missing)))
            return
        except Exception as error:
            finds += 1
            told.send(Find(seed, _as_text(error)))
        seed += 1


def _goes_on(order: Order, played: int, end: float) -> bool:
    if order.rounds is not None:
        return played < order.rounds
    return played == 0 or time.monotonic() < end


def _as_text(error: Exception) -> str:
    """A difference that was raised on purpose tells all by its text; others need their trace."""
    if isinstance(error, AssertionError) and str(error):
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    return "".join(traceback.format_exception(error))
