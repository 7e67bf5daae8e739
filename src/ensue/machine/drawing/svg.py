"""A machine as SVG: one file, no scripts, legible on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from itertools import pairwise

from ensue.errors import LimitError
from ensue.machine.drawing.graph import Box, Circle, Graph, graph_of
from ensue.machine.drawing.layout import Size, Spot, place
from ensue.machine.model import Machine

RADIUS = 8.0
LINE = 13.0
CHARACTER = 6.1
MARGIN = 16.0
GAP = Size(44.0, 16.0)
LONGEST = 34
TURN = 6.0
LANE = 7.0

MOST_STATES = 10_000
"""The most states of a picture: these take seconds to lay out, and some megabytes."""
STYLE = """
.ground { fill: #ffffff }
.state { fill: #ffffff; stroke: #33475b; stroke-width: 1.4 }
.start { fill: #33475b; stroke: none }
.box { fill: #ffffff; stroke: #33475b; stroke-width: 1.2 }
.all { fill: #cfd8e3 }
.puts { stroke: #b3541e; stroke-width: 1.8 }
.arrow { fill: none; stroke: #7a8a9a; stroke-width: 1.1 }
.back { stroke: #b0bac4; stroke-dasharray: 4 3 }
text { font: 11px Helvetica, Arial, sans-serif; fill: #1d2b38; text-anchor: middle }
.name { font-size: 10px; fill: #51616f }
.output { font-weight: bold; fill: #b3541e }
"""


def to_svg(machine: Machine, title: str = "") -> str:
    """Raises `LimitError` for a machine that is too large for any picture."""
    if len(machine.names) > MOST_STATES:
        raise LimitError(
            "drawn_states",
            len(machine.names),
            MOST_STATES,
            "states of a machine to be drawn",
            "write it as `json` or `dot`, or use smaller counts for the picture",
        )
    graph = graph_of(machine)
    sizes = {each.id: _circle_size(each) for each in graph.circles}
    sizes |= {each.id: _box_size(each) for each in graph.boxes}
    pairs = [(each.source, each.target) for each in graph.arrows]
    spots = place(sizes, pairs, graph.steps, GAP)
    back = {target for source, target in pairs if _leads_back(spots, source, target)}
    lanes = {x: n for n, x in enumerate(sorted({spots[each].x for each in back}))}
    left = MARGIN + (GAP.width / 2 if back else 0)
    width = max((spots[each].x + size.width / 2 for each, size in sizes.items()), default=0.0)
    height = max((spots[each].y + size.height / 2 for each, size in sizes.items()), default=0.0)
    whole = Size(width + 2 * left, height + 2 * MARGIN + (LANE * len(lanes) + 4 if lanes else 0))
    extent = f'width="{_number(whole.width)}" height="{_number(whole.height)}"'
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {_number(whole.width)} {_number(whole.height)}" {extent} '
            f'role="img" aria-label="{escape(title or "a correlation machine")}">',
            *([f"<title>{escape(title)}</title>"] if title else []),
            f"<style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 1 L7 4 L0 7 z" fill="#7a8a9a"/>'
            "</marker></defs>",
            '<rect class="ground" width="100%" height="100%" rx="6"/>',
            f'<g transform="translate({_number(left)} {_number(MARGIN)})">',
            *_arrows(graph, sizes, spots, {x: height + 4 + LANE * n for x, n in lanes.items()}),
            *(_circle(each, spots[each.id]) for each in graph.circles),
            *(_box(each, sizes[each.id], spots[each.id]) for each in graph.boxes),
            "</g>",
            "</svg>",
            "",
        ]
    )


def _circle_size(circle: Circle) -> Size:
    lines = _circle_lines(circle)
    return Size(
        max(2 * RADIUS, *(CHARACTER * 0.9 * len(line) for line in lines)),
        2 * (RADIUS + LINE * len(lines)),
    )


def _circle_lines(circle: Circle) -> list[str]:
    return [_short(line) for line in (circle.text, *circle.notes)]


def _box_size(box: Box) -> Size:
    longest = max((len(_short(line)) for line in box.lines), default=0)
    return Size(max(14.0, CHARACTER * longest + 14), max(14.0, LINE * len(box.lines) + 8))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _circle(circle: Circle, spot: Spot) -> str:
    x, y = _number(spot.x), _number(spot.y)
    parts = [f'<g data-node="{circle.id}">']
    parts.append(f"<title>{escape(', '.join((circle.text, *circle.notes)))}</title>")
    parts.append(f'<circle class="state" cx="{x}" cy="{y}" r="{_number(RADIUS)}"/>')
    if circle.is_initial:
        parts.append(f'<circle class="start" cx="{x}" cy="{y}" r="{_number(RADIUS / 2)}"/>')
    for number, line in enumerate(_circle_lines(circle)):
        at = spot.y + RADIUS + LINE * (number + 0.85)
        parts.append(f'<text class="name" x="{x}" y="{_number(at)}">{escape(line)}</text>')
    return "".join([*parts, "</g>"])


def _box(box: Box, size: Size, spot: Spot) -> str:
    classes = " ".join(
        ["box", *(["all"] if box.is_shaded else []), *(["puts"] if box.output else [])]
    )
    left, top = spot.x - size.width / 2, spot.y - size.height / 2
    parts = [
        f"<g><title>{escape(box.tooltip)}</title>",
        f'<rect class="{classes}" x="{_number(left)}" y="{_number(top)}" '
        f'width="{_number(size.width)}" height="{_number(size.height)}" rx="2"/>',
    ]
    for number, line in enumerate(box.lines):
        kind = ' class="output"' if line == box.output else ""
        at = top + 4 + LINE * (number + 0.78)
        parts.append(
            f'<text{kind} x="{_number(spot.x)}" y="{_number(at)}">{escape(_short(line))}</text>'
        )
    return "".join([*parts, "</g>"])


def _arrows(
    graph: Graph, sizes: dict[str, Size], spots: dict[str, Spot], lanes: dict[float, float]
) -> Iterator[str]:
    """Forward arrows are curves; backward arrows share a lane below for each column."""
    boxes = {each.id for each in graph.boxes}
    widest: dict[float, float] = {}
    for node, spot in spots.items():
        widest[spot.x] = max(widest.get(spot.x, 0.0), sizes[node].width / 2)
    for arrow in graph.arrows:
        source, target = spots[arrow.source], spots[arrow.target]
        if _leads_back(spots, arrow.source, arrow.target):
            aside = Spot(source.x + 1, source.y), Spot(target.x - 1, target.y)
            start = _edge(source, aside[0], arrow.source in boxes, sizes[arrow.source])
            end = _edge(target, aside[1], arrow.target in boxes, sizes[arrow.target])
            down = source.x + widest[source.x] + TURN + 4
            up = target.x - widest[target.x] - TURN - 4
            yield (
                f'<path class="arrow back" d="{_way_back(start, end, down, up, lanes[target.x])}" '
                'marker-end="url(#head)"/>'
            )
        else:
            start = _edge(source, target, arrow.source in boxes, sizes[arrow.source])
            end = _edge(target, source, arrow.target in boxes, sizes[arrow.target])
            reach = (end.x - start.x) * 0.4
            path = (
                f"M{_point(start)} C{_number(start.x + reach)} {_number(start.y)} "
                f"{_number(end.x - reach)} {_number(end.y)} {_point(end)}"
            )
            yield f'<path class="arrow" d="{path}" marker-end="url(#head)"/>'


def _way_back(start: Spot, end: Spot, down: float, up: float, lane: float) -> str:
    """Out to the right, down, along the lane, up, and in from the left, with round corners."""
    corners = [Spot(down, start.y), Spot(down, lane), Spot(up, lane), Spot(up, end.y), end]
    path, before = f"M{_point(start)}", start
    for corner, after in pairwise(corners):
        path += f" L{_point(_towards(corner, before))} Q{_point(corner)} "
        path += _point(_towards(corner, after))
        before = corner
    return f"{path} L{_point(end)}"


def _towards(corner: Spot, other: Spot) -> Spot:
    distance = math.hypot(other.x - corner.x, other.y - corner.y) or 1.0
    share = min(TURN, distance / 2) / distance
    return Spot(corner.x + (other.x - corner.x) * share, corner.y + (other.y - corner.y) * share)


def _leads_back(spots: dict[str, Spot], source: str, target: str) -> bool:
    return spots[target].x <= spots[source].x


def _edge(spot: Spot, towards: Spot, is_box: bool, size: Size) -> Spot:
    """Where an arrow meets the edge of a node: boxes at their sides, circles anywhere."""
    if is_box:
        if towards.x == spot.x:
            return Spot(spot.x, spot.y + math.copysign(size.height / 2, towards.y - spot.y))
        return Spot(spot.x + math.copysign(size.width / 2, towards.x - spot.x), spot.y)
    distance = math.hypot(towards.x - spot.x, towards.y - spot.y) or 1.0
    share = (RADIUS + 1) / distance
    return Spot(spot.x + (towards.x - spot.x) * share, spot.y + (towards.y - spot.y) * share)


def _point(spot: Spot) -> str:
    return f"{_number(spot.x)} {_number(spot.y)}"


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
