"""Events as a table: a row each, a column for each value that one of them has.

Everything that comes from events is escaped. A table is shown up to a number of rows, and says how
many more there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

import msgspec

from ensue.events.event import Event
from ensue.events.times import EARLIEST, LATEST, format_time

MOST_ROWS = 20
MOST_COLUMNS = 12
LONGEST_CELL = 80
_BORDER = "1px solid rgba(128,128,128,.35)"
_CELL = f"text-align:left;padding:.15em .6em;border-bottom:{_BORDER};white-space:nowrap"
_FIRST = ("time", "type", "correlation")


class EventTable:
    """Events that show themselves as a table."""

    def __init__(self, events: Sequence[Event], most_rows: int = MOST_ROWS) -> None:
        self.events = events
        self.most_rows = most_rows

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        return "\n".join(str(each) for each in self.events[: self.most_rows]) or "no events"

    def _repr_html_(self) -> str:
        return rows_html(self.events[: self.most_rows], len(self.events))


def table(events: Iterable[Event], rows: int = MOST_ROWS) -> EventTable:
    """A table of events, such as `run.push` or `library.run` give."""
    return EventTable(list(events), rows)


def rows_html(shown: Sequence[Event], count: int) -> str:
    """Some events as a table, and how many there are in all."""
    if not shown:
        return "<p><em>no events</em></p>"
    cells = [_cells(each) for each in shown]
    names = dict.fromkeys(name for name in _FIRST if any(name in row for row in cells))
    names.update(dict.fromkeys(name for row in cells for name in row))
    columns = list(islice(names, MOST_COLUMNS))
    heads = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    lines = "".join(
        "<tr>"
        + "".join(f'<td style="{_CELL}">{escape(row.get(name, ""))}</td>' for name in columns)
        + "</tr>"
        for row in cells
    )
    more = count - len(shown)
    note = f"<p><em>and {more:,} more</em></p>" if more > 0 else ""
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>{note}"
    )


def _cells(event: Event) -> dict[str, str]:
    known = EARLIEST <= event.time <= LATEST
    found = {"time": format_time(event.time) if known else f"{event.time} us", "type": event.type}
    for name in ("correlation", "partitionkey"):
        if name in event.extensions:
            found[name] = str(event.extensions[name])
    if event.attributes:
        found.update((name, _text(value)) for name, value in event.attributes.items())
    elif event.data is not None:
        found["data"] = _text(event.data)
    return found


def _text(value: Any) -> str:
    if isinstance(value, str):
        text = value
    elif value is None:
        text = ""
    else:
        try:
            text = msgspec.json.encode(value).decode()
        except TypeError:
            text = str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
