"""Figures of one link."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class ServiceCounts:
    """`filtered` events were wanted nowhere; `dropped` ones could not be passed on, by reason."""

    received: int = 0
    sent: int = 0
    filtered: int = 0
    duplicates: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    reconnects: int = 0
    last_error: str = ""
    lag: int | None = None
