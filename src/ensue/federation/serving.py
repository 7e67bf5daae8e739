"""A gateway as a process: from its TOML file until it is told to stop.

`ready` goes to the standard error once every service is connected and every standing request is in
force; after it, every trouble with a link, once. SIGTERM and SIGINT end it: what is on its way
arrives first. What must outlive it stands in a file beside the TOML file (`[gateway] state` names
another).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from pathlib import Path

from ensue.federation.configuration import read_file, read_settings
from ensue.federation.gateway import Gateway
from ensue.federation.listening import listen

_SECONDS_BETWEEN_LOOKS = 0.5
_DRIVERS = ("mqtt", "aio_pika", "aiormq", "nats")
"""Loggers of client libraries: what they say at every attempt is told of a link once."""


def serve_gateway(path: str | Path) -> int:
    """Run until SIGTERM; out goes the exit code. Raises `UsageError` with every mistake."""
    settings = read_settings(read_file(path), str(path))
    for name in _DRIVERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    place = Path(path)
    memory = place.with_name(f"{place.stem}.state.json")
    if settings.state is not None:
        memory = Path(settings.state)
    return asyncio.run(_serve(Gateway(settings, memory=memory)))


async def _serve(gateway: Gateway) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ended.set)
    doors = None
    if gateway.settings.listen is not None:
        doors = await listen(gateway, gateway.settings.listen)
    watching = asyncio.create_task(_tell_troubles(gateway))
    started = asyncio.create_task(gateway.start())
    waiting = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait((started, waiting), return_when=asyncio.FIRST_COMPLETED)
        if started.done():
            started.result()
            _spare_collections()
            _say("ready")
            await waiting
    finally:
        for task in (started, waiting, watching):
            task.cancel()
        await asyncio.gather(started, waiting, watching, return_exceptions=True)
        await gateway.stop()
        if doors is not None:
            await doors.close()
    return 0


def _spare_collections() -> None:
    """Look for circles of objects less often: events on their way form none, and thousands of them
    are alive at a time, over which each look would go."""
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


async def _tell_troubles(gateway: Gateway) -> None:
    told: dict[str, str] = {}
    while True:
        for link in gateway.status():
            error = link["last_error"]
            if error and told.get(link["service"]) != error:
                told[link["service"]] = error
                _say(f"ensue: {error}")
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
