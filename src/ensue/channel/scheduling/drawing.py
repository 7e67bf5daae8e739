"""A Gantt chart of a timeline, as SVG: a row for each operation, a bar for each turn.

In comes a `Schedule`; out goes a text. The marks above a row are releases of its sources and the
bars are in the colour of their thread; a turn that ends after its deadline has a red frame.
"""

from __future__ import annotations

from html import escape
from typing import Final

from ensue.channel.scheduling.schedule import Schedule

WIDTH: Final = 960
ROW: Final = 26
TOP: Final = 46
MOST_NAME: Final = 24
CHARACTER: Final = 7.2
TICKS: Final = 10
COLOURS: Final = ("#3b6ea5", "#d9822b", "#4c9a5f", "#8a5aa8", "#b04a5a", "#5f7f86")


def gantt(schedule: Schedule) -> str:
    """The chart of one hyperperiod, or of its beginning."""
    timeline = schedule.timeline
    names = [each.name for each in schedule.operations]
    left = 24 + CHARACTER * max(min(len(name), MOST_NAME) for name in names)
    scale = (WIDTH - left - 16) / max(1, timeline.end)
    height = TOP + ROW * len(names) + 34
    row_of = {name: TOP + ROW * row for row, name in enumerate(names)}
    what = "one hyperperiod" if timeline.is_whole else "the beginning of a hyperperiod"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" role="img">',
        f"<title>{what}: {timeline.end / 1000:g} ms</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="20" font-size="14" fill="#222">{what}, {timeline.end / 1000:g} ms, all'
        f" sources released together</text>",
    ]
    lines += _grid(timeline.end, left, scale, height)
    for name in names:
        y = row_of[name]
        lines.append(
            f'<text x="12" y="{y + 16}" fill="#222">{escape(_short(name))}</text>'
            f'<line x1="{left:.1f}" x2="{WIDTH - 16}" y1="{y + ROW - 3}" y2="{y + ROW - 3}"'
            ' stroke="#ccc"/>'
        )
    for turn in timeline.turns:
        y, x = row_of[turn.name], left + turn.begin * scale
        width = max(1.0, (turn.end - turn.begin) * scale)
        frame = ' stroke="#c00000" stroke-width="2"' if turn.is_late else ""
        late = ", too late" if turn.is_late else ""
        lines.append(
            f'<rect x="{x:.1f}" y="{y + 5}" width="{width:.1f}" height="{ROW - 9}"'
            f' fill="{COLOURS[turn.thread % len(COLOURS)]}"{frame}><title>{escape(turn.name)}:'
            f" {turn.begin / 1000:g} to {turn.end / 1000:g} ms, released at"
            f" {turn.released / 1000:g} ms, thread {turn.thread + 1}{late}</title></rect>"
        )
    for y, release in {(row_of[turn.name], turn.released) for turn in timeline.turns}:
        x = left + release * scale
        lines.append(
            f'<path d="M{x:.1f} {y + 1}v{ROW - 4}" stroke="#222" stroke-width="1.2"'
            f' stroke-dasharray="2 2"/>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _grid(end: int, left: float, scale: float, height: int) -> list[str]:
    lines = []
    for tick in range(TICKS + 1):
        at = end * tick / TICKS
        x = left + at * scale
        lines.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - 26}" stroke="#eee"/>'
            f'<text x="{x:.1f}" y="{height - 10}" fill="#555" text-anchor="middle">'
            f"{at / 1000:.4g}{' ms' if tick == TICKS else ''}</text>"
        )
    return lines


def _short(name: str) -> str:
    return name if len(name) <= MOST_NAME else name[: MOST_NAME - 1] + "…"
