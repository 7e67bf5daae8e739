"""How the server is: health, readiness, Prometheus metrics, figures for plots, gateways."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.problems import ProblemError
from ensue.server.api.reading import Parameters, principal_of, station_of
from ensue.server.station.figures import BUCKETS, KEPT_SECONDS
from ensue.server.station.station import Station
from ensue.version import __version__

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


async def health(request: Request) -> Response:
    """Whether the process works: 200, or 503 with the reason."""
    failure = station_of(request).line.failure
    if failure:
        raise ProblemError(503, "failing", f"events cannot be taken: {failure}")
    return Response(b'{"status":"ok"}', media_type="application/json")


async def ready(request: Request) -> Response:
    """Whether requests should be sent here."""
    station = station_of(request)
    busy = station.line.waiting_events > 0.8 * station.limits.waiting_events
    lags = station.indexer.lag > 0.8 * station.limits.history_lag
    if station.line.failure or busy or lags or not request.app.state.is_ready:
        reason = station.line.failure or (
            "too many events wait" if busy else "the history is behind" if lags else "it is not yet"
        )
        raise ProblemError(503, "not-ready", f"not now: {reason}", {"Retry-After": "1"})
    return Response(b'{"status":"ready"}', media_type="application/json")


async def figures(request: Request) -> Response:
    """The last minutes, second by second."""
    principal_of(request)
    given = Parameters(request, ("seconds",))
    seconds = given.number("seconds", 300, 1, KEPT_SECONDS)
    station = station_of(request)
    samples = station.figures.samples
    body = {
        "version": __version__,
        "uptime": round(time.time() - station.figures.started, 1),
        "position": station.seq,
        "first_position": station.feed.floor + 1,
        "events": station.figures.events,
        "outputs": station.figures.outputs,
        "late": station.figures.late,
        "rejected": station.figures.rejected,
        "duplicates": station.figures.duplicates,
        "waiting": station.line.waiting_events,
        "subscribers": len(station.feed.subscribers),
        "history_lag": station.indexer.lag,
        "samples": list(islice(samples, max(0, len(samples) - seconds), None)),
    }
    return Response(msgspec.json.encode(body), media_type="application/json")


async def gateways(request: Request) -> Response:
    """The gateway of this process, if it has one: its services, links and requests."""
    principal_of(request)
    Parameters(request, ())
    gateway = request.app.state.gateway
    body: list[Any] = []
    if gateway is not None:
        body = [{"health": gateway.health(), "status": gateway.status()}]
    return Response(msgspec.json.encode(body, enc_hook=str), media_type="application/json")


async def metrics(request: Request) -> Response:
    """Everything that is counted, for Prometheus."""
    principal_of(request)
    station = station_of(request)
    text = "".join(f"{line}\n" for line in _metrics(station))
    gateway = request.app.state.gateway
    if gateway is not None:
        text += str(gateway.metrics())
    return Response(text, headers={"Content-Type": PROMETHEUS})


def _metrics(station: Station) -> Iterator[str]:
    counted = station.figures
    totals: Mapping[str, tuple[str, int]] = {
        "events": ("events that were read by the rules and are kept", counted.events),
        "outputs": ("outputs of rules", counted.outputs),
        "late_events": ("events that came too late, once for each library", counted.late),
        "rejected_events": ("events that could not be taken", counted.rejected),
        "duplicate_events": ("events that had been taken before", counted.duplicates),
        "deliveries": ("events and outputs handed to subscribers", counted.delivered),
        "commits": ("transactions of the journal", counted.commits),
    }
    for name, (words, value) in totals.items():
        yield from _head(f"ensue_{name}_total", words, "counter")
        yield f"ensue_{name}_total {value}"
    gauges: Mapping[str, tuple[str, float]] = {
        "waiting_events": ("events that wait to be read", station.line.waiting_events),
        "subscribers": ("subscribers", len(station.feed.subscribers)),
        "history_lag_entries": ("journal entries that the history lacks", station.indexer.lag),
        "journal_position": ("number of the last entry of the journal", station.seq),
        "libraries": ("libraries that run", len(station.hosted)),
        "uptime_seconds": ("seconds since the start", round(time.time() - counted.started, 1)),
    }
    for name, (words, gauge) in gauges.items():
        yield from _head(f"ensue_{name}", words, "gauge")
        yield f"ensue_{name} {gauge}"
    yield from _head(
        "ensue_publish_seconds",
        "from the arrival of a publication to its acknowledgement",
        "histogram",
    )
    total = 0
    for bound, count in zip((*BUCKETS, float("inf")), counted.latency_counts, strict=True):
        total += count
        yield f'ensue_publish_seconds_bucket{{le="{_bound(bound)}"}} {total}'
    yield f"ensue_publish_seconds_sum {counted.latency_sum:.6f}"
    yield f"ensue_publish_seconds_count {total}"
    yield from _head("ensue_rule_outputs_total", "outputs of a rule", "counter")
    for (library, rule), outputs in station.rule_counts().items():
        yield f'ensue_rule_outputs_total{{library="{library}",rule="{rule}"}} {outputs}'
    yield from _head("ensue_refused_events_total", "events that a library cannot read", "counter")
    for name, hosted in list(station.hosted.items()):
        yield f'ensue_refused_events_total{{library="{name}"}} {hosted.counted.refused}'


def _head(name: str, words: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else f"{bound:g}"
