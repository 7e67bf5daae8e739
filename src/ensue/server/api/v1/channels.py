"""`/v1/channels` and `/v1/gateways`: where events come from and go to, with the state of links."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.reading import Parameters, answered, principal_of
from ensue.server.channels.hosting import Channels
from ensue.server.settings.tables import MAIN


async def channels(request: Request) -> Response:
    """The channels that the caller may use, and the links that lead into each."""
    principal = principal_of(request)
    Parameters(request, ())
    hosted: Channels = request.app.state.channels
    body = [
        {
            "name": each.name,
            "url": "/" if each.name == MAIN else f"/channels/{each.name}/",
            "clock": each.settings.server.clock,
            "lateness": each.settings.server.lateness,
            "position": each.station.seq,
            "events": each.station.figures.events,
            "outputs": each.station.figures.outputs,
            "libraries": sorted(each.station.hosted),
            "links": [
                {**msgspec.to_builtins(link.table), **msgspec.to_builtins(link.state)}
                for link in hosted.links
                if link.table.to == each.name
            ],
        }
        for each in hosted
        if principal.may_use(each.name)
    ]
    return answered(body)


async def gateways(request: Request) -> Response:
    """The gateway of this process, if it has one: its services, links and requests."""
    principal_of(request)
    Parameters(request, ())
    gateway = request.app.state.gateway
    body: list[Any] = []
    if gateway is not None:
        body = [
            {
                "health": gateway.health(),
                "status": gateway.status(),
                "announced": gateway.announced(),
            }
        ]
    return Response(msgspec.json.encode(body, enc_hook=str), media_type="application/json")
