"""The counts of a run: events read, outputs, late events, events without a key."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Counts:
    """`without_key` counts, for each correlation, events that match a port but have no key."""

    events: int = 0
    outputs: int = 0
    late: int = 0
    without_key: Counter[str] = field(default_factory=Counter)
