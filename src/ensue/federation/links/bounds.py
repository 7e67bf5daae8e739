"""How much a gateway keeps of each service: parameters, so that trials can make them small."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Counts of events at one service, but for `in_flight_bytes`."""

    in_flight: int = 4_000
    """Events that wait for their destinations; then no more are received."""
    in_flight_bytes: int = 256 * 1024 * 1024
    """Their bytes, likewise."""
    resting: int = 3_000
    """Events for the service that another gateway is to bring, kept for when it fails."""
    seen: int = 100_000
    """Identities of events at the service in one generation (`links.seen`)."""
    told: int = 3_000
    """Identities that a neighbour is told that was away."""


USUAL = Bounds()
