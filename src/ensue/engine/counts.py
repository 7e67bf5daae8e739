"""The counts of a run, and how a notebook shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

_MOST_RULES = 8
"""More rules than these are not named in a notebook."""


@dataclass
class Counts:
    """Events read, outputs, late events, and events without a key.

    `without_key` counts, for each correlation, events that match a port but have no key.
    `begun_anew` counts how often the clock of a stream has begun anew (`timing/agreeing`).
    """

    events: int = 0
    outputs: int = 0
    late: int = 0
    without_key: Counter[str] = field(default_factory=Counter)
    begun_anew: int = 0

    def clear(self) -> None:
        """Count from zero again."""
        self.events = self.outputs = self.late = self.begun_anew = 0
        self.without_key.clear()


def run_html(rules: Sequence[str], engine: str, counts: Counts) -> str:
    """A small table: the rules of a run, its engine and its counts; all text in it is escaped."""
    names = ", ".join(rules[:_MOST_RULES])
    more = f" and {len(rules) - _MOST_RULES:,} more" if len(rules) > _MOST_RULES else ""
    rows = [
        ("rules", f"{names}{more}"),
        ("engine", engine),
        ("events", f"{counts.events:,}"),
        ("outputs", f"{counts.outputs:,}"),
    ]
    if counts.late:
        rows.append(("late", f"{counts.late:,}"))
    rows += [
        ("without key", f"{number:,} events of {rule}")
        for rule, number in counts.without_key.most_common(_MOST_RULES)
    ]
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table>{lines}</table>"
