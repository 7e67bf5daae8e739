"""Figures, slopes and pictures: the arithmetic behind a report."""

from __future__ import annotations

from functools import partial
from xml.etree import ElementTree

import pytest

from ensue_bench.plot import draw
from ensue_bench.report import Curve, Figure, cost, fitted_slope, rate, spread
from ensue_bench.tables import figure_row, quantity
from ensue_bench.timing import Work, side_by_side


def curve(power: float) -> Curve:
    points = tuple((float(size), (size**power,) * 3) for size in (1, 10, 100, 1000))
    return Curve("keys-step", "a < b", "keys", "µs/event", points)


@pytest.mark.parametrize("power", [-0.5, 0.0, 1.0, 2.0])
def test_the_slope_of_a_power_is_its_exponent(power: float) -> None:
    assert fitted_slope(curve(power).medians) == pytest.approx(power)


def test_a_slope_of_one_is_linear_and_of_two_is_not() -> None:
    assert curve(1).is_linear_or_better
    assert not curve(2).is_linear_or_better


def test_a_fixed_cost_does_not_hide_a_slope_from_the_upper_half() -> None:
    points = tuple((float(size), (1000 + size**2,)) for size in (1, 10, 100, 1000, 10_000))
    hidden = Curve("keys-step", "x", "keys", "µs/event", points)

    assert hidden.slope < hidden.upper_slope
    assert not hidden.is_linear_or_better


def test_the_spread_is_the_distance_of_the_quartiles_over_the_median() -> None:
    """Of 1 to 9 the quartiles are 3 and 7, and the median is 5."""
    assert spread([9, 1, 8, 2, 7, 3, 6, 4, 5]) == pytest.approx(4 / 5)


def test_an_aim_is_met_from_the_side_that_is_better() -> None:
    assert rate("r", [5.0, 6.0, 7.0], aim=6).is_met is True
    assert rate("r", [5.0, 5.9, 7.0], aim=6).is_met is False
    assert cost("c", "s", [5.0], aim=6).is_met is True
    assert cost("c", "s", [7.0], aim=6).is_met is False
    assert cost("c", "s", [7.0]).is_met is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (11_260_000, "events/s", "11.3 M/s"),
        (512_300, "events/s", "512 k/s"),
        (1.534, "times", "1.53×"),
        (47.9, "bytes", "47.9 bytes"),
        (4725.3, "µs/event", "4,725 µs/event"),
    ],
)
def test_quantities_are_short(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_a_row_says_whether_its_aim_is_met() -> None:
    missed = Figure("f", "times", (9.0, 11.0), "higher", 12)

    assert figure_row(missed) == ("f", "10×", "±10%", "≥ 12×", "missed")


def test_works_that_are_compared_take_turns() -> None:
    order: list[str] = []
    works = {name: Work(order.append, partial(str, name)) for name in "ab"}

    found = side_by_side(works, repeats=2)

    assert order == ["a", "b"] * 3
    assert [len(taken) for taken in found.values()] == [2, 2]


def test_a_picture_is_xml_with_a_line_and_a_point_for_each_size() -> None:
    picture = ElementTree.fromstring(draw([curve(1), curve(0.5)], "a < b & c"))
    tags = [each.tag.rpartition("}")[2] for each in picture.iter()]

    assert tags.count("circle") == 8
    assert "a < b & c" in [each.text for each in picture.iter()]
