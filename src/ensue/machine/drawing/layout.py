"""The layout of a graph in columns, from the states that are active at the start to the right.

The column of a node is given: the number of steps to it. Within a column each node is moved, a few
times from left to right and back, to the middle of its neighbours, so that few arrows cross. Arrows
that lead back are not considered; `svg` draws them below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Spot:
    """The position of the middle of a node."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Size:
    width: float
    height: float


def place(
    nodes: Mapping[str, Size],
    arrows: Sequence[tuple[str, str]],
    steps: Mapping[str, int],
    gap: Size,
) -> dict[str, Spot]:
    """A spot for every node, with the upper left corner of the whole at (0, 0)."""
    columns: list[list[str]] = [[] for _ in range(max(steps.values(), default=-1) + 1)]
    for node in nodes:
        columns[steps[node]].append(node)
    columns = [column for column in columns if column]
    neighbours: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in arrows:
        # An arrow that leads back would pull both of its ends to the middle of the picture.
        if steps[source] < steps[target]:
            neighbours[source].append(target)
            neighbours[target].append(source)
    spots: dict[str, Spot] = {}
    x = 0.0
    for column in columns:
        width = max(nodes[node].width for node in column)
        y = 0.0
        for node in column:
            spots[node] = Spot(x + width / 2, y + nodes[node].height / 2)
            y += nodes[node].height + gap.height
        x += width + gap.width
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            _settle(column, nodes, neighbours, spots, gap.height)
    top = min((spots[node].y - nodes[node].height / 2 for node in nodes), default=0.0)
    return {node: Spot(spot.x, spot.y - top) for node, spot in spots.items()}


def _settle(
    column: list[str],
    nodes: Mapping[str, Size],
    neighbours: Mapping[str, list[str]],
    spots: dict[str, Spot],
    gap: float,
) -> None:
    """Order a column by the middle of its neighbours, and keep the nodes apart."""

    def wanted(node: str) -> float:
        near = [spots[each].y for each in neighbours[node]]
        return sum(near) / len(near) if near else spots[node].y

    wishes = {node: wanted(node) for node in column}
    column.sort(key=lambda node: wishes[node])
    tops: list[float] = []
    for node in column:
        top = wishes[node] - nodes[node].height / 2
        tops.append(max(top, tops[-1] + nodes[column[len(tops) - 1]].height + gap) if tops else top)
    # Keeping nodes apart moves the column down: move it back up by the average.
    drift = sum(
        top + nodes[node].height / 2 - wishes[node] for node, top in zip(column, tops, strict=True)
    ) / len(column)
    for node, top in zip(column, tops, strict=True):
        spots[node] = Spot(spots[node].x, top + nodes[node].height / 2 - drift)
