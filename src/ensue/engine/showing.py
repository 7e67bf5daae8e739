"""How runs show themselves in a notebook: a small table, everything in it escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ensue.engine.counts import Counts

MOST_RULES = 8


def run_html(rules: Sequence[str], engine: str, counts: Counts) -> str:
    """Which rules run, on which engine, and what they have read and put out so far."""
    names = ", ".join(rules[:MOST_RULES])
    more = f" and {len(rules) - MOST_RULES:,} more" if len(rules) > MOST_RULES else ""
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
        for rule, number in counts.without_key.most_common(MOST_RULES)
    ]
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table>{lines}</table>"
