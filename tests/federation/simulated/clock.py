"""An event loop whose clock jumps to the next thing that happens: hours pass in seconds.

Nothing waits in earnest, so that a run depends on its seed alone, not on the machine.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
from collections.abc import Coroutine
from typing import Any

_owner: contextvars.ContextVar[str] = contextvars.ContextVar("owner", default="")
_DAY = 86_400.0


class StuckError(Exception):
    """Nothing will ever happen again."""


class _Jumping(selectors.SelectSelector):
    """Where a selector would wait, the clock goes on instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StuckError
        self.now += max(timeout, 0.0)
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Tasks have an owner, so that all of a gateway's can be ended at one blow."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)
        self._owned: dict[str, dict[asyncio.Task[Any], None]] = {}
        self.set_task_factory(self._make)

    def time(self) -> float:
        return self._jumping.now

    def wall(self) -> int:
        """Nanoseconds since 1970."""
        return int((_DAY + self.time()) * 1e9)

    def begin(self, owner: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task that, with all that it starts, belongs to an owner."""
        context = contextvars.copy_context()
        context.run(_owner.set, owner)
        return self.create_task(work, context=context)

    def end(self, owner: str) -> None:
        """Cancel everything that belongs to an owner."""
        for task in self._owned.pop(owner, {}):
            task.cancel()

    def _make(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Any,
        *,
        context: contextvars.Context | None = None,
        **given: Any,
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, context=context, **given)
        owner = (context or contextvars.copy_context()).get(_owner, "")
        if owner:
            owned = self._owned.setdefault(owner, {})
            owned[task] = None
            task.add_done_callback(lambda ended: owned.pop(ended, None))
        return task
