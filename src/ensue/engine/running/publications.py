"""A history that the rules of a run ask while events are read.

An event is read with the history as it stands before that event, and is kept there afterwards.
The history itself, its stores and its terms are in `ensue.history`; here is what a run needs of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol

from ensue.events.event import Event
from ensue.lang.expressions.asking import AskingScope, TemporalStore
from ensue.lang.expressions.evaluation import SCOPE_OF


class Publications(TemporalStore, Protocol):
    """A history that a run asks, and keeps its events in."""

    def check(self, event: Event) -> None:
        """Raises `EventError` if an event cannot be kept."""

    def add(self, event: Event) -> None: ...


def asking(parts: Iterator[list[Event]], publications: Publications) -> Iterator[list[Event]]:
    """Parts of outputs, each made while predicates can ask the history."""
    while True:
        token = SCOPE_OF.set(partial(AskingScope, history=publications))
        try:
            part = next(parts, None)
        finally:
            SCOPE_OF.reset(token)
        if part is None:
            return
        yield part
