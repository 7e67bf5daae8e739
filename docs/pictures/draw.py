"""Draws the pictures of the docs: python docs/pictures/draw.py

Machines are drawn from the rules beside this file. Timelines show events as dots, each with a text,
and below them what a rule makes of them: a bar from the first to the last event of a match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import ensue
from ensue.machine.drawing import to_svg
from ensue.machine.plan import plan

FOLDER = Path(__file__).parent
STEP, LEFT, TOP, ROW = 110, 60, 54, 44
"""Pixels between two events, to the left of the first, above them, and for each bar."""


@dataclass(frozen=True)
class Bar:
    """From one event to another, by their places; `found` is what is said at its end."""

    first: float
    last: float
    text: str
    found: bool = False


def timeline(title: str, events: Sequence[tuple[str, str]], bars: Sequence[Bar]) -> str:
    """An SVG of events, each with what stands above and below it, and of bars below them."""
    width = 2 * LEFT + STEP * (len(events) - 1)
    height = TOP + 40 + ROW * len(bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<line x1="{LEFT - 30}" y1="{TOP}" x2="{width - LEFT + 30}" y2="{TOP}" stroke="#90a4ae"/>',
    ]
    for place, (above, below) in enumerate(events):
        x = LEFT + STEP * place
        lines += [
            f'<circle cx="{x}" cy="{TOP}" r="6" fill="#00796b"/>',
            _text(x, TOP - 16, "#263238", above),
            _text(x, TOP + 24, "#607d8b", below),
        ]
    for number, bar in enumerate(bars):
        y = TOP + 52 + ROW * number
        first, last = LEFT + STEP * bar.first, LEFT + STEP * bar.last
        colour = "#c62828" if bar.found else "#90a4ae"
        lines += [
            f'<line x1="{first}" y1="{y}" x2="{last}" y2="{y}" stroke="{colour}" '
            'stroke-width="4"/>',
            _text((first + last) / 2, y + 18, colour if bar.found else "#607d8b", bar.text),
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _text(x: float, y: float, colour: str, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="{colour}">{escape(text)}</text>'


def timelines() -> dict[str, str]:
    prices = [("100", "1"), ("96", "3"), ("90", "4"), ("89", "5")]
    cart = [("hat", "0 min"), ("", "30 min"), ("cap", "40 min"), ("Paid", "50 min")]
    return {
        "fall.svg": timeline(
            "Ticks of one symbol, compared in neighbouring pairs",
            prices,
            [
                Bar(0, 1, "4 % below: nothing"),
                Bar(1, 2, "6 % below: Fall", found=True),
                Bar(2, 3, "1 % below: nothing"),
            ],
        ),
        "cart.svg": timeline(
            "Items in a cart, each with its own thirty minutes",
            cart,
            [
                Bar(0, 1, "30 min passed: Abandoned, hat", found=True),
                Bar(2, 3, "paid: unless p forgets the cap"),
            ],
        ),
    }


def pictures() -> dict[str, str]:
    """The name of each file, and its text."""
    library = ensue.load(FOLDER / "rules.cor")
    display = plan(library.correlations["NavigationDisplay"])
    match = plan(library.correlations["DoubleMatch"])
    assert display.built is not None
    assert display.machine is not None
    assert match.machine is not None
    return {
        "navigation-display-built.svg": to_svg(display.built, "NavigationDisplay, as built"),
        "navigation-display.svg": to_svg(display.machine, "NavigationDisplay, optimised"),
        "double-match.svg": to_svg(match.machine, "DoubleMatch, optimised"),
        **timelines(),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
