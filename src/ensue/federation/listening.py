"""`/health` and `/metrics` of a gateway over HTTP, where `[gateway] listen` asks for it."""

from __future__ import annotations

from typing import Any

from ensue.errors import UsageError
from ensue.federation.adapters.base import driver
from ensue.federation.doors import Doors
from ensue.federation.gateway import Gateway


async def listen(gateway: Gateway, address: str) -> Doors:
    """Serve until `await close()` of what is returned."""
    web: Any = driver("aiohttp.web", "http")
    host, _, port = address.rpartition(":")

    async def health(_: Any) -> Any:
        found = gateway.health()
        return web.json_response(found, status=200 if found["status"] == "ready" else 503)

    async def metrics(_: Any) -> Any:
        await gateway.measure()
        return web.Response(text=gateway.metrics(), headers={"Content-Type": _METRICS_TYPE})

    async def status(_: Any) -> Any:
        await gateway.measure()
        return web.json_response(gateway.status())

    application = web.Application()
    application.add_routes(
        [web.get("/health", health), web.get("/metrics", metrics), web.get("/links", status)]
    )
    doors = Doors(application)
    try:
        await doors.open(host.strip("[]") or None, int(port))
    except (OSError, OverflowError) as error:
        await doors.close()
        raise UsageError(f"`[gateway] listen`: `{address}` cannot be used: {error}") from None
    return doors


_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
