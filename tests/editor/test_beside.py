"""Work in threads that an editor which closes does not wait for."""

from __future__ import annotations

import asyncio
import time
from threading import Event

import pytest

from ensue.editor.beside import beside


def test_what_a_function_returns_or_raises_comes_back() -> None:
    async def both() -> tuple[int, str]:
        with pytest.raises(ValueError, match="x"):
            await beside(int, "x")
        return await beside(int, "7"), await beside(str, b"a", "ascii")

    assert asyncio.run(both()) == (7, "a")


def test_a_loop_ends_before_the_work_beside_it() -> None:
    ended = Event()

    async def closed() -> None:
        waiting = asyncio.ensure_future(beside(ended.wait, 60.0))
        await asyncio.sleep(0.05)
        waiting.cancel()

    began = time.monotonic()
    asyncio.run(closed())
    took = time.monotonic() - began
    ended.set()

    assert took < 30
