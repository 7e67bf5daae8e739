"""`/health`, `/ready` and `/metrics`: the state of the server, for monitoring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.requests.problems import ProblemError
from ensue.server.api.requests.reading import principal_of
from ensue.server.channels.hosting import Channels, HostedChannel
from ensue.server.station.figures import BUCKETS
from ensue.server.station.station import Station

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"


async def health(request: Request) -> Response:
    """Whether the process works: 200, or 503 with the reason."""
    channels: Channels = request.app.state.channels
    for each in channels:
        if each.station.line.failure:
            raise ProblemError(
                503,
                "failing",
                f"events of channel `{each.name}` cannot be taken: {each.station.line.failure}",
            )
    return Response(b'{"status":"ok"}', media_type="application/json")


async def ready(request: Request) -> Response:
    """Whether requests should be sent here."""
    channels: Channels = request.app.state.channels
    reasons = [] if request.app.state.is_ready else ["it is not yet"]
    for each in channels:
        station = each.station
        if station.line.failure:
            reasons.append(f"channel `{each.name}`: {station.line.failure}")
        if station.line.waiting_events > 0.8 * station.limits.waiting_events:
            reasons.append(f"too many events wait in channel `{each.name}`")
        if station.indexer.lag > 0.8 * station.limits.history_lag:
            reasons.append(f"the history of channel `{each.name}` is behind")
    if reasons:
        raise ProblemError(503, "not-ready", f"not now: {reasons[0]}", {"Retry-After": "1"})
    return Response(b'{"status":"ready"}', media_type="application/json")


async def metrics(request: Request) -> Response:
    """Everything that is counted, for Prometheus."""
    principal_of(request)
    channels: Channels = request.app.state.channels
    text = "".join(f"{line}\n" for line in _metrics(list(channels)))
    gateway = request.app.state.gateway
    if gateway is not None:
        text += str(gateway.metrics())
    return Response(text, headers={"Content-Type": PROMETHEUS})


def _metrics(channels: Sequence[HostedChannel]) -> Iterator[str]:
    stations = {each.name: each.station for each in channels}
    counters: Mapping[str, tuple[str, str]] = {
        "events": ("events that were read by the rules and are kept", "events"),
        "outputs": ("outputs of rules", "outputs"),
        "late_events": ("events that came too late, once for each library", "late"),
        "rejected_events": ("events that could not be taken", "rejected"),
        "duplicate_events": ("events that had been taken before", "duplicates"),
        "deliveries": ("events and outputs handed to subscribers", "delivered"),
        "commits": ("transactions of the journal", "commits"),
    }
    for name, (words, attribute) in counters.items():
        yield from _head(f"ensue_{name}_total", words, "counter")
        for channel, station in stations.items():
            value = getattr(station.figures, attribute)
            yield f'ensue_{name}_total{{channel="{channel}"}} {value}'
    name = "ensue_history_processor_seconds_total"
    yield from _head(name, "processor time of filling the history", "counter")
    for channel, station in stations.items():
        yield f'{name}{{channel="{channel}"}} {station.indexer.processor_seconds:.6f}'
    gauges: Mapping[str, tuple[str, Callable[[Station], float]]] = {
        "waiting_events": ("events that wait to be read", lambda of: of.line.waiting_events),
        "subscribers": ("subscribers", lambda of: len(of.feed.subscribers)),
        "history_lag_entries": (
            "journal entries that the history lacks",
            lambda of: of.indexer.lag,
        ),
        "journal_position": ("number of the last entry of the journal", lambda of: of.seq),
        "libraries": ("libraries that run", lambda of: len(of.hosted)),
        "uptime_seconds": (
            "seconds since the start",
            lambda of: round(time.time() - of.figures.started, 1),
        ),
    }
    for name, (words, gauge) in gauges.items():
        yield from _head(f"ensue_{name}", words, "gauge")
        for channel, station in stations.items():
            yield f'ensue_{name}{{channel="{channel}"}} {gauge(station)}'
    yield from _latencies(stations)
    yield from _head("ensue_rule_outputs_total", "outputs of a rule", "counter")
    for channel, station in stations.items():
        for (library, rule), outputs in station.rule_counts().items():
            labels = f'channel="{channel}",library="{library}",rule="{rule}"'
            yield f"ensue_rule_outputs_total{{{labels}}} {outputs}"
    yield from _head("ensue_refused_events_total", "events that a library cannot read", "counter")
    for channel, station in stations.items():
        for name, hosted in list(station.hosted.items()):
            labels = f'channel="{channel}",library="{name}"'
            yield f"ensue_refused_events_total{{{labels}}} {hosted.counted.refused}"
    words = "events that a library has not read since its rules hold too many keys"
    yield from _head("ensue_full_events_total", words, "counter")
    for channel, station in stations.items():
        for name, hosted in list(station.hosted.items()):
            yield (
                f'ensue_full_events_total{{channel="{channel}",library="{name}"}}'
                f" {hosted.counted.full}"
            )
    yield from _head("ensue_rule_keys", "keys under which a rule holds state", "gauge")
    for channel, station in stations.items():
        for name, hosted in list(station.hosted.items()):
            for each in hosted.run.holders():
                labels = f'channel="{channel}",library="{name}",rule="{each.name}"'
                yield f"ensue_rule_keys{{{labels}}} {len(each.keys)}"


def _latencies(stations: Mapping[str, Station]) -> Iterator[str]:
    yield from _head(
        "ensue_publish_seconds",
        "from the arrival of a publication to its acknowledgement",
        "histogram",
    )
    for channel, station in stations.items():
        counted, total = station.figures, 0
        label = f'channel="{channel}"'
        for bound, count in zip((*BUCKETS, float("inf")), counted.latency_counts, strict=True):
            total += count
            yield f'ensue_publish_seconds_bucket{{{label},le="{_bound(bound)}"}} {total}'
        yield f"ensue_publish_seconds_sum{{{label}}} {counted.latency_sum:.6f}"
        yield f"ensue_publish_seconds_count{{{label}}} {total}"


def _head(name: str, words: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else f"{bound:g}"
