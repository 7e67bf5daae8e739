"""`ensue run --explain`: why each output came, and what every rule still waits for, on stderr."""

from __future__ import annotations

from collections.abc import Sequence

from ensue.cli.terminal import say
from ensue.engine.run import Run
from ensue.events.event import Event

KEYS_SHOWN = 3


def tell_why(run: Run, outputs: Sequence[Event]) -> None:
    for output in outputs:
        say(str(run.why(output)), "dim")


def tell_what_is_missing(run: Run, correlations: Sequence[str]) -> None:
    """For each correlation the keys that came nearest to their next output."""
    for name in correlations:
        nearest = run.nearest(name, KEYS_SHOWN)
        for each in nearest or [run.why(name)]:
            say(str(each), "dim")
