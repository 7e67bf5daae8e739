"""A gateway as a process: from its TOML file until it is told to stop.

`ready` goes to the standard error once every service that `[gateway] require` names is connected
and every standing request in force; until then what it waits for, every few seconds. Every trouble
with a link is told once, and its end. SIGTERM and SIGINT end the process: what is on its way
arrives first. `[gateway] listen` asks for `/health`, `/ready` and `/metrics` over HTTP. What must
outlive the process stands in files beside the TOML file (`[gateway] state` names another place).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from pathlib import Path
from typing import Any

from ensue.errors import UsageError
from ensue.federation.adapters.base import driver
from ensue.federation.configuration import read_file, read_settings
from ensue.federation.doors import Doors
from ensue.federation.gateway import Gateway

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_BETWEEN_REASONS = 5.0
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_DRIVERS = ("mqtt", "aio_pika", "aiormq", "nats")
"""Loggers of client libraries: what they say at every attempt is told of a link once."""


def serve_gateway(path: str | Path) -> int:
    """Run until SIGTERM; out goes the exit code. Raises `UsageError` with every mistake."""
    settings = read_settings(read_file(path), str(path))
    quiet_drivers()
    place = Path(path)
    memory = place.with_name(f"{place.stem}.state.json")
    if settings.state is not None:
        memory = Path(settings.state)
    return asyncio.run(_serve(Gateway(settings, memory=memory)))


def quiet_drivers() -> None:
    """Leave it to the links to say what is wrong with them."""
    for name in _DRIVERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


async def _serve(gateway: Gateway) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ended.set)
    doors = None
    if gateway.settings.listen is not None:
        doors = await _listen(gateway, gateway.settings.listen)
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


async def _listen(gateway: Gateway, address: str) -> Doors:
    """Serve `/health`, `/ready`, `/metrics`, `/links` and `/announced`, until the doors close."""
    web: Any = driver("aiohttp.web", "http")
    host, _, port = address.rpartition(":")

    async def health(_: Any) -> Any:
        found = gateway.health()
        return web.json_response(found, status=200 if found["status"] == "ready" else 503)

    async def ready(_: Any) -> Any:
        found = gateway.readiness()
        return web.json_response(found, status=200 if found["ready"] else 503)

    async def metrics(_: Any) -> Any:
        await gateway.measure()
        return web.Response(text=gateway.metrics(), headers={"Content-Type": _METRICS_TYPE})

    async def status(_: Any) -> Any:
        await gateway.measure()
        return web.json_response(gateway.status())

    async def announced(_: Any) -> Any:
        return web.json_response(gateway.announced())

    application = web.Application()
    application.add_routes(
        [
            web.get("/health", health),
            web.get("/ready", ready),
            web.get("/metrics", metrics),
            web.get("/links", status),
            web.get("/announced", announced),
        ]
    )
    doors = Doors(application)
    try:
        await doors.open(host.strip("[]") or None, int(port))
    except (OSError, OverflowError) as error:
        await doors.close()
        raise UsageError(f"`[gateway] listen`: `{address}` cannot be used: {error}") from None
    return doors


def _spare_collections() -> None:
    """Look for circles of objects less often: events on their way form none, and thousands of them
    are alive at a time, over which each look would go."""
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


async def _tell_troubles(gateway: Gateway) -> None:
    """Tell of each link when it breaks, why, and when it stands again; and what keeps the gateway
    from being ready."""
    told: dict[str, str] = {}
    away: set[str] = set()
    now = asyncio.get_running_loop().time
    reminded = now()
    while True:
        for link in gateway.status():
            name, trouble = link["service"], link["trouble"]
            if link["connected"] and name in away:
                away.discard(name)
                told[name] = trouble
                _say(f"ensue: service `{name}` at {link['address']} is connected")
            elif trouble and not link["connected"] and name not in away:
                away.add(name)
                told[name] = trouble
                _say(f"ensue: {trouble} (it is tried again)")
            elif trouble and told.get(name) != trouble:
                told[name] = trouble
                _say(f"ensue: {trouble}")
        waits_for = gateway.waits_for()
        if waits_for and not gateway.is_ready and now() - reminded > _SECONDS_BETWEEN_REASONS:
            reminded = now()
            for trouble in waits_for.values():
                _say(f"ensue: not ready: {trouble}")
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
