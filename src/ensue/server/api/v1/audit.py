"""`/v1/audit`: who has changed rules and settings, and when."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from ensue.events.times import format_time
from ensue.server.api.requests.reading import Parameters, answered, principal_of, station_of
from ensue.server.api.v1.history import DEFAULT_LIMIT


async def audit(request: Request) -> Response:
    """Changes of rules and settings, the latest first."""
    principal_of(request, "admin")
    given = Parameters(request, ("limit", "before"))
    station = station_of(request)
    limit = given.number("limit", DEFAULT_LIMIT, 1, station.limits.answers)
    before = given.number("before", 2**62, 0, 2**62)
    found = await asyncio.to_thread(station.registry.audited, limit, before)
    return answered(
        [
            {
                "number": each.number,
                "at": format_time(each.at),
                "author": each.author,
                "action": each.action,
                "subject": each.subject,
                "detail": each.detail,
            }
            for each in found
        ]
    )
