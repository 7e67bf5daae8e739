"""Figures of links in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_COUNTERS = {
    "in": ("events_in_total", "events received from the service"),
    "out": ("events_out_total", "events published at the service"),
    "filtered": ("events_filtered_total", "events that were wanted nowhere"),
    "duplicates": ("events_duplicate_total", "events that the service had already"),
    "reconnects": ("reconnects_total", "tries to connect again"),
}
_GAUGES = {
    "connected": ("connected", "1 while the link stands"),
    "active": ("active", "1 while the link carries events"),
    "in_flight": ("events_in_flight", "events that wait for their destinations"),
    "waiting": ("events_waiting", "events that wait to be published"),
    "lag": ("lag_events", "events that wait at the service"),
}


def text(gateway: str, status: Sequence[dict[str, Any]]) -> str:
    lines: list[str] = []
    for kind, figures in (("counter", _COUNTERS), ("gauge", _GAUGES)):
        for key, (name, meaning) in figures.items():
            values = [(_labels(gateway, each), each[key]) for each in status]
            lines += _family(name, kind, meaning, values)
    dropped = [
        (_labels(gateway, each, reason=reason), count)
        for each in status
        for reason, count in sorted(each["dropped"].items())
    ]
    lines += _family(
        "events_dropped_total", "counter", "events that could not be passed on", dropped
    )
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, meaning: str, values: Iterable[tuple[str, Any]]) -> Iterable[str]:
    full = f"ensue_link_{name}"
    yield f"# HELP {full} {meaning}"
    yield f"# TYPE {full} {kind}"
    for labels, value in values:
        if value is not None:
            yield f"{full}{{{labels}}} {int(value)}"


def _labels(gateway: str, status: dict[str, Any], **more: str) -> str:
    named = {"gateway": gateway, "service": status["service"], "kind": status["kind"], **more}
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in named.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
