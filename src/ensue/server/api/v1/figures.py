"""`/v1/figures`: what the server does, second by second, for plots and `ensue top`."""

from __future__ import annotations

import time
from itertools import islice

from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.reading import Parameters, answered, principal_of, station_of
from ensue.server.station.figures import KEPT_SECONDS
from ensue.version import __version__


async def figures(request: Request) -> Response:
    """The last minutes, second by second."""
    principal_of(request)
    given = Parameters(request, ("seconds",))
    seconds = given.number("seconds", 300, 1, KEPT_SECONDS)
    station = station_of(request)
    samples = station.figures.samples
    body = {
        "version": __version__,
        "demo": station.settings.server.demo,
        "uptime": round(time.time() - station.figures.started, 1),
        "position": station.seq,
        "first_position": station.feed.floor + 1,
        "events": station.figures.events,
        "outputs": station.figures.outputs,
        "late": station.figures.late,
        "rejected": station.figures.rejected,
        "duplicates": station.figures.duplicates,
        "expired": station.figures.expired,
        "waiting": station.line.waiting_events,
        "subscribers": len(station.feed.subscribers),
        "history_lag": station.indexer.lag,
        "samples": list(islice(samples, max(0, len(samples) - seconds), None)),
    }
    return answered(body)
