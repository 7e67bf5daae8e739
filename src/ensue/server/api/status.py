"""`/health`, `/ready` and `/metrics`: the state of the server, for monitoring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import Response

from ensue.server.api.process import process_metrics
from ensue.server.api.requests.problems import ProblemError
from ensue.server.api.requests.reading import principal_of
from ensue.server.channels.hosting import Channels, HostedChannel
from ensue.server.station.figures import BUCKETS
from ensue.server.station.station import Station

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
SERIES: Final[Sequence[tuple[str, str, str, Callable[[Station], float]]]] = (
    ("events_total", "events that were read by the rules and are kept", COUNTER,
     lambda of: of.figures.events),
    ("outputs_total", "outputs of rules", COUNTER, lambda of: of.figures.outputs),
    ("late_events_total", "events that came too late, once for each library", COUNTER,
     lambda of: of.figures.late),
    ("rejected_events_total", "events that could not be taken", COUNTER,
     lambda of: of.figures.rejected),
    ("duplicate_events_total", "events that had been taken before", COUNTER,
     lambda of: of.figures.duplicates),
    ("expired_events_total", "events, or deliveries of them, that came after their `expirytime`",
     COUNTER, lambda of: of.figures.expired),
    ("deliveries_total", "events and outputs handed to subscribers", COUNTER,
     lambda of: of.figures.delivered),
    ("commits_total", "transactions of the journal", COUNTER, lambda of: of.figures.commits),
    ("history_processor_seconds_total", "processor time of filling the history", COUNTER,
     lambda of: round(of.indexer.processor_seconds, 6)),
    ("waiting_events", "events that wait to be read", GAUGE, lambda of: of.line.waiting_events),
    ("subscribers", "subscribers", GAUGE, lambda of: len(of.feed.subscribers)),
    ("history_lag_entries", "journal entries that the history lacks", GAUGE,
     lambda of: of.indexer.lag),
    ("journal_position", "number of the last entry of the journal", GAUGE, lambda of: of.seq),
    ("unsaved_entries", "journal entries that a start after a kill would read again", GAUGE,
     lambda of: of.unsaved),
    ("recovery_entries", "journal entries that this start has read again", GAUGE,
     lambda of: of.replayed),
    ("recovery_seconds", "how long this start has read", GAUGE, lambda of: of.recovery_seconds),
    ("journal_failing", "1 while the journal cannot be written to", GAUGE,
     lambda of: int(of.line.failure is not None)),
    ("libraries", "libraries that run", GAUGE, lambda of: len(of.hosted)),
    ("troubles", "what is wrong at the moment; the log says what", GAUGE,
     lambda of: len(list(of.troubles))),
    ("uptime_seconds", "seconds since the start", GAUGE,
     lambda of: round(time.time() - of.figures.started, 1)),
)  # fmt: skip
"""Metrics of a channel: name, words, kind, and value."""
LIMITS: Final = ("waiting_events", "history_lag", "subscribers", "connections", "keys")


async def health(request: Request) -> Response:
    """Whether the process works: 200, or 503. The reason is for those who have a token."""
    reasons = list(_failures(request.app.state.channels))
    if reasons:
        raise ProblemError(503, "failing", _told(request, reasons, "events cannot be taken"))
    return Response(b'{"status":"ok"}', media_type="application/json")


async def ready(request: Request) -> Response:
    """Whether requests should be sent here."""
    channels: Channels = request.app.state.channels
    is_ready = request.app.state.is_ready
    reasons = [] if is_ready else ["not everything is in force yet"]
    reasons += _failures(channels)
    for each in channels:
        station = each.station
        if station.line.waiting_events > 0.8 * station.limits.waiting_events:
            reasons.append(f"too many events wait in channel `{each.name}`")
        if station.indexer.lag > 0.8 * station.limits.history_lag:
            reasons.append(f"the history of channel `{each.name}` is behind")
    if reasons:
        told = _told(request, reasons, "not now" if is_ready else reasons[0])
        raise ProblemError(503, "not-ready", told, {"Retry-After": "1"})
    return Response(b'{"status":"ready"}', media_type="application/json")


def _failures(channels: Channels) -> Iterator[str]:
    for each in channels:
        if each.station.line.failure:
            yield f"events of channel `{each.name}` cannot be taken: {each.station.line.failure}"


def _told(request: Request, reasons: Sequence[str], public: str) -> str:
    """Reasons, which name channels and files, or for a caller without a token only the gist."""
    if request.state.principal is None:
        return f"{public}: ask with a token for the reason, or read the log of the server"
    return "; ".join(reasons)


async def metrics(request: Request) -> Response:
    """Everything that is counted, for Prometheus."""
    principal_of(request)
    text = "".join(f"{line}\n" for line in _metrics(request.app.state))
    gateway = request.app.state.gateway
    if gateway is not None:
        text += str(gateway.metrics())
    return Response(text, headers={"Content-Type": PROMETHEUS})


def _metrics(state: State) -> Iterator[str]:
    for name, kind, words, labels, value in process_metrics(state.started):
        yield from _head(name, words, kind)
        yield f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"
    yield from _head("ensue_requests_total", "requests that were answered", "counter")
    for (method, status), count in sorted(state.answers.counts.items()):
        yield f'ensue_requests_total{{method="{method}",status="{status}"}} {count}'
    yield from _head("ensue_refused_logins_total", "requests without a known token", "counter")
    for reason, count in state.refused_logins.counts.items():
        yield f'ensue_refused_logins_total{{reason="{reason}"}} {count}'
    yield from _head("ensue_ready", "whether everything is in force", "gauge")
    yield f"ensue_ready {int(state.is_ready)}"
    yield from _head("ensue_limit", "limits that metrics can come up to", "gauge")
    limits = state.limits
    for name in LIMITS:
        yield f'ensue_limit{{limit="{name}"}} {getattr(limits, name)}'
    yield from _channel_metrics(list(state.channels))


def _channel_metrics(channels: Sequence[HostedChannel]) -> Iterator[str]:
    stations = {each.name: each.station for each in channels}
    for name, words, kind, value in SERIES:
        yield from _head(f"ensue_{name}", words, kind)
        for channel, station in stations.items():
            yield f'ensue_{name}{{channel="{channel}"}} {value(station)}'
    yield from _latencies(stations)
    yield from _library_metrics(stations)


def _library_metrics(stations: Mapping[str, Station]) -> Iterator[str]:
    yield from _head("ensue_rule_outputs_total", "outputs of a rule", "counter")
    for channel, station in stations.items():
        for (library, rule), outputs in station.since_start.outputs(station.hosted).items():
            labels = f'channel="{channel}",library="{library}",rule="{rule}"'
            yield f"ensue_rule_outputs_total{{{labels}}} {outputs}"
    yield from _head("ensue_refused_events_total", "events that a library cannot read", "counter")
    for channel, station in stations.items():
        for name, counted in station.since_start.refused(station.hosted).items():
            labels = f'channel="{channel}",library="{name}"'
            yield f"ensue_refused_events_total{{{labels}}} {counted.refused}"
    words = "events that a library has not read since its rules hold too many keys"
    yield from _head("ensue_full_events_total", words, "counter")
    for channel, station in stations.items():
        for name, counted in station.since_start.refused(station.hosted).items():
            yield f'ensue_full_events_total{{channel="{channel}",library="{name}"}} {counted.full}'
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
