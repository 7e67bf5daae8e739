"""What was measured, as data: figures, curves, and the report that holds them and its JSON.

A figure is the median of its repeats; its spread is how far apart the middle half of them lies, as
a part of the median. An aim is what the figure should reach, and which way is better says how. A
curve is a cost at several sizes, with the slope of a straight line through it on logarithmic
scales: 0 is a cost that does not depend on the size, 1 is linear.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ensue_bench.environment import load_average

FORMAT = "ensue-bench"
VERSION = 1
LINEAR = 1.1
"""A slope up to this counts as linear: the rest is what caches and noise add."""

Better = Literal["higher", "lower"]


def spread(values: Sequence[float]) -> float:
    """The distance between the quartiles over the median; of two values, the whole distance."""
    middle = statistics.median(values)
    if len(values) < 2 or not middle:
        return 0.0
    if len(values) < 4:
        return (max(values) - min(values)) / abs(middle)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / abs(middle)


@dataclass(frozen=True)
class Figure:
    """One measured number. `note` says what the reader must know to read it."""

    name: str
    unit: str
    values: tuple[float, ...]
    better: Better
    aim: float | None = None
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def is_met(self) -> bool | None:
        if self.aim is None:
            return None
        return self.median >= self.aim if self.better == "higher" else self.median <= self.aim

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "median": rounded(self.median),
            "spread": rounded(spread(self.values)),
            "repeats": len(self.values),
            "values": [rounded(each) for each in self.values],
            "better": self.better,
            "aim": self.aim,
            "met": self.is_met,
            "note": self.note,
        }


def rate(name: str, values: Sequence[float], aim: float | None = None, note: str = "") -> Figure:
    """Events a second."""
    return Figure(name, "events/s", tuple(values), "higher", aim, note)


def cost(
    name: str, unit: str, values: Sequence[float], aim: float | None = None, note: str = ""
) -> Figure:
    """Something of which less is better."""
    return Figure(name, unit, tuple(values), "lower", aim, note)


@dataclass(frozen=True)
class Curve:
    """A cost (`unit`) against a size (`against`), one line in the plot `plot`.

    `title` is what the picture says above; that of a machine by default.
    """

    plot: str
    name: str
    against: str
    unit: str
    points: tuple[tuple[float, tuple[float, ...]], ...]
    title: str = ""

    @property
    def medians(self) -> list[tuple[float, float]]:
        return [(size, statistics.median(values)) for size, values in self.points]

    @property
    def slope(self) -> float:
        return fitted_slope(self.medians)

    @property
    def upper_slope(self) -> float:
        """The growth over the larger half of the sizes, where no fixed cost hides it."""
        count = len(self.points)
        return fitted_slope(self.medians[min(count // 2, count - 2) :])

    @property
    def is_linear_or_better(self) -> bool:
        return max(self.slope, self.upper_slope) <= LINEAR

    def as_json(self) -> dict[str, Any]:
        return {
            "plot": self.plot,
            "name": self.name,
            "against": self.against,
            "unit": self.unit,
            "points": [
                {
                    "size": size,
                    "median": rounded(statistics.median(values)),
                    "spread": rounded(spread(values)),
                    "repeats": len(values),
                }
                for size, values in self.points
            ],
            "slope": rounded(self.slope),
            "upper_slope": rounded(self.upper_slope),
            "linear_or_better": self.is_linear_or_better,
        }


@dataclass(frozen=True)
class ReportTable:
    """Figures that belong together, in rows of text: others' beside ours, or many of a kind."""

    name: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "head": self.head, "rows": self.rows}


@dataclass(frozen=True)
class Picture:
    """A drawing that a subject has made itself, as SVG."""

    name: str
    svg: str


Finding = Figure | Curve | ReportTable | Picture


def fitted_slope(points: Sequence[tuple[float, float]]) -> float:
    """The exponent of the power of the size that fits best (least squares of the logarithms)."""
    if len(points) < 2:
        return 0.0
    fit = statistics.linear_regression(
        [math.log(size) for size, _ in points], [math.log(value) for _, value in points]
    )
    return fit.slope


@dataclass
class Report:
    """All that one run of a subject has found."""

    subject: str
    quick: bool
    environment: dict[str, Any]
    figures: list[Figure] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    tables: list[ReportTable] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        match finding:
            case Figure():
                self.figures.append(finding)
            case Curve():
                self.curves.append(finding)
            case ReportTable():
                self.tables.append(finding)
            case Picture():
                self.pictures.append(finding)

    def close(self) -> None:
        """Note the load at the end too: the figures were taken between the two."""
        self.environment["load_average_at_end"] = load_average()

    def as_json(self) -> str:
        members = {
            "format": FORMAT,
            "version": VERSION,
            "subject": self.subject,
            "quick": self.quick,
            "environment": self.environment,
            "figures": [each.as_json() for each in self.figures],
            "curves": [each.as_json() for each in self.curves],
            "tables": [each.as_json() for each in self.tables],
        }
        return json.dumps(members, indent=2) + "\n"


def rounded(value: float) -> float:
    """Four significant digits: more would be noise."""
    return float(f"{value:.4g}")
