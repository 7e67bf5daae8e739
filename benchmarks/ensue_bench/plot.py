"""Curves as SVG: points and lines on logarithmic scales, in one picture for each plot.

In come curves that share a plot; out goes the text of a picture that stands on its own. There is
one kind of plot here, so it is drawn directly rather than by a plotting library.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from ensue_bench.report import Curve

WIDTH, HEIGHT = 680, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 224, 40, 52
COLOURS = ("#00796b", "#c2410c", "#4f46e5", "#a16207", "#be185d")
DASHES = ("", "6 3", "2 3", "8 3 2 3")


class Scale:
    """A logarithmic axis over whole powers of ten, between two ends in the picture."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self._low = math.floor(math.log10(min(values)) + 1e-9)
        self._high = max(self._low + 1, math.ceil(math.log10(max(values)) - 1e-9))
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        part = (math.log10(value) - self._low) / (self._high - self._low)
        return round(self._begin + part * (self._end - self._begin), 1)

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self._low, self._high + 1)]


def draw(curves: Sequence[Curve], title: str) -> str:
    """One picture of curves with the same axes."""
    points = [point for curve in curves for point in curve.medians]
    across = Scale([size for size, _ in points], LEFT, WIDTH - RIGHT)
    up = Scale([value for _, value in points], HEIGHT - BOTTOM, TOP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{escape(title)}</text>',
        *_axes(across, up, curves[0]),
    ]
    for number, curve in enumerate(curves):
        lines += _line(curve, number, across, up)
    return "\n".join([*lines, "</svg>", ""])


def _axes(across: Scale, up: Scale, curve: Curve) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in across.ticks:
        x = across.place(value)
        yield f'<path d="M{x} {TOP}V{bottom}" stroke="#e5e7eb"/>'
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{_tick(value)}</text>'
    for value in up.ticks:
        y = up.place(value)
        yield f'<path d="M{LEFT} {y}H{right}" stroke="#e5e7eb"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{_tick(value)}</text>'
    middle = (LEFT + right) / 2
    name = escape(curve.against)
    yield f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">{name}</text>'
    y = (TOP + bottom) / 2
    yield (
        f'<text x="18" y="{y}" text-anchor="middle" transform="rotate(-90 18 {y})">'
        f"{escape(curve.unit)}</text>"
    )


def _line(curve: Curve, number: int, across: Scale, up: Scale) -> Iterator[str]:
    colour = COLOURS[number % len(COLOURS)]
    dash = DASHES[number % len(DASHES)]
    places = [(across.place(size), up.place(value)) for size, value in curve.medians]
    path = "L".join(f"{x} {y}" for x, y in places)
    style = f'stroke="{colour}" stroke-width="2" fill="none"' + (
        f' stroke-dasharray="{dash}"' if dash else ""
    )
    yield f'<path d="M{path}" {style}/>'
    for x, y in places:
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
    x, y = WIDTH - RIGHT + 12, TOP + 12 + number * 38
    yield f'<path d="M{x} {y - 4}h24" {style}/>'
    yield f'<text x="{x + 30}" y="{y}">{escape(curve.name)}</text>'
    yield (
        f'<text x="{x + 30}" y="{y + 15}" fill="#6b7280">slope {curve.slope:.2f}'
        f" (upper half {curve.upper_slope:.2f})</text>"
    )


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"
