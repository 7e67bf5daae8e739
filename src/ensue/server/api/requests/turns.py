"""Questions that take long, some at a time, so that publishing goes on beside them.

In comes a function that reads the history, tries rules or reads a long text; it is called in
another thread. Only some are worked on at once, since they share the processor with everything
else; more wait for their turn, and beyond that a caller is told to come again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from starlette.requests import HTTPConnection

from ensue.server.station.line import BusyError

AT_ONCE: Final = 3
MOST_WAITING: Final = 64

P = ParamSpec("P")
T = TypeVar("T")


class QuestionTurns:
    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)
        self._asked = 0

    async def take(self, function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Raises `BusyError` if too many wait."""
        if self._asked >= AT_ONCE + MOST_WAITING:
            raise BusyError(f"{MOST_WAITING} questions wait for their turn", seconds=2)
        self._asked += 1
        try:
            async with self._free:
                return await asyncio.to_thread(function, *given, **named)
        finally:
            self._asked -= 1


async def in_turn(
    request: HTTPConnection, function: Callable[P, T], *given: P.args, **named: P.kwargs
) -> T:
    """The result of a function that may take long, once it is its turn."""
    turns: QuestionTurns = request.app.state.turns
    return await turns.take(function, *given, **named)
