"""Work beside the answers of the language server, which an editor that closes does not wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


async def beside(
    work: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """What a function returns or raises, from a thread that ends with the process.

    `asyncio.to_thread` would let an event loop end only after the last of its threads, so that the
    analyses of a large library would keep a server whose editor has gone.
    """
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[Result] = loop.create_future()

    def end(result: Result | None, error: BaseException | None) -> None:
        if ending.done():
            return  # nobody waits any more
        if error is None:
            ending.set_result(result)  # type: ignore[arg-type]
        else:
            ending.set_exception(error)

    def run() -> None:
        result, problem = None, None
        try:
            result = work(*args, **kwargs)
        except BaseException as error:  # it is raised where it is waited for
            problem = error
        with suppress(RuntimeError):  # the loop has ended, and with it who waited
            loop.call_soon_threadsafe(end, result, problem)

    Thread(target=run, daemon=True).start()
    return await ending
