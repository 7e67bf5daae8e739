"""Laxity against load as the paper draws it: averages as lines, bars from the least to the most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WIDTH, HEIGHT = 680, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 24, 40, 52
MOST, LEAST = 1.0, -0.5
SERIES = (
    ("high", False, "#00796b", "high priority, single channel"),
    ("low", False, "#c2410c", "low priority, single channel"),
    ("high", True, "#4db6ac", "high priority, federated"),
    ("low", True, "#f59e0b", "low priority, federated"),
)

Span = tuple[float, float, float]
"""The least, the average and the most."""
Drawn = tuple[bool, float, dict[str, Span]]
"""Whether federated, the load, and the laxity of each priority."""


def draw_laxity(points: Sequence[Drawn], loads: Sequence[float]) -> str:
    low, high = min(loads) - 0.02, max(loads) + 0.02

    def across(load: float) -> float:
        return round(LEFT + (load - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">'
        "Laxity (% of the period) against load of the processor</text>",
        *_rules(),
    ]
    for load in loads:
        x = across(load)
        lines.append(
            f'<text x="{x}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{load:.0%}</text>'
        )
    for number, (name, federated, colour, label) in enumerate(SERIES):
        # A little apart, so that no bar hides another.
        places = [
            (round(across(load) + 3 * number - 4, 1), spans[name])
            for is_federated, load, spans in points
            if is_federated is federated
        ]
        lines += _ready_queue(places, colour)
        y = HEIGHT - BOTTOM - 62 + 15 * number
        lines.append(f'<text x="{LEFT + 10}" y="{y}" fill="{colour}">{label}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _up(laxity: float) -> float:
    part = (MOST - max(LEAST, min(MOST, laxity))) / (MOST - LEAST)
    return round(TOP + part * (HEIGHT - TOP - BOTTOM), 1)


def _rules() -> Iterator[str]:
    for percent in range(-50, 101, 25):
        y, colour = _up(percent / 100), "#6b7280" if percent == 0 else "#e5e7eb"
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="{colour}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{percent}</text>'


def _ready_queue(places: Sequence[tuple[float, Span]], colour: str) -> Iterator[str]:
    path = "L".join(f"{x} {_up(average)}" for x, (_, average, _) in places)
    yield f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>'
    for x, (least, _, most) in places:
        yield f'<path d="M{x} {_up(least)}V{_up(most)}" stroke="{colour}"/>'
