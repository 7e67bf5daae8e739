"""Rules of one shape with windows, stepped together, put out what each puts out by itself."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

import ensue
from ensue.engine.run import Run
from ensue.engine.step import StepStream, boards, candidates, companies
from ensue.engine.step.candidates import WindowedGroup
from ensue.events.event import Event

from .coming_and_going import batches_on_the_way
from .test_groups import TYPES, events, rule

WINDOWS = ["within 1 ms", "within 2 ms", "within 3 ms", "within 5 ms"]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rules of one shape are enough."""
    monkeypatch.setattr(companies, "SMALLEST_GROUP", 2)


def expression(draw: Random, depth: int, labels: list[str]) -> str:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice("abc") + ("{2}" if draw.random() < 0.1 else "")
    parts = [expression(draw, depth - 1, labels) for _ in range(draw.choice([2, 2, 3]))]
    text = f"({draw.choice([' + ', ' ; ', ' ; ', ' | ']).join(parts)})"
    if draw.random() < 0.25:
        labels.append(f"l{len(labels)}")
        return f"{labels[-1]}:{text}"
    return text


class Shape:
    """What rules have in common; their windows may differ in length."""

    def __init__(self, draw: Random) -> None:
        labels: list[str] = []
        depths = [draw.choice([1, 2, 2, 3]) for _ in range(draw.choice([1, 1, 1, 2]))]
        self._filter = " || ".join(expression(draw, depth, labels) for depth in depths)
        self._by = draw.choice(["", "by k", "by k", "by k, w"])
        self._made = "case true: push new Out { k = a.k, v = c.v, b = true };"
        if labels:
            cases = [f"case {label}: push new Out {{ v = b.v }};" for label in labels]
            self._made = " ".join([*cases, f"case !{labels[0]}: push new Out {{ v = 1 }};"])

    def rule(self, name: str, draw: Random) -> str:
        body = f"{self._filter} {draw.choice(WINDOWS)} {self._by} {{ {self._made} }}"
        return rule(name, body, draw)


def groups_in(run: Run) -> list[WindowedGroup]:
    engine = run._engine
    assert isinstance(engine, StepStream)
    known = dict.fromkeys(engine.groups.values())
    return [each for each in known if isinstance(each, WindowedGroup)]


@pytest.mark.parametrize(("few", "most"), [(32, 1024), (3, 1024), (1, 2)])
def test_windows_of_a_group_mean_what_they_mean_by_the_definitions(
    few: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judged together or one by one, and with moments that are given up at once."""
    monkeypatch.setattr(boards, "FEW_EVENTS", few)
    monkeypatch.setattr(boards, "MOST_MOMENTS", most)
    monkeypatch.setattr(candidates, "FIRED_KEPT", few)
    seen = made = 0
    for seed in range(12):
        draw = Random(seed)
        shapes = [Shape(draw), Shape(draw)]
        rules = [draw.choice(shapes).rule(f"R{n}", draw) for n in range(draw.randrange(2, 9))]
        library = ensue.parse(TYPES + "".join(rules))
        plain, together = library.start("reference"), library.start("step")
        seen += len(groups_in(together))
        for event in events(draw, 60):
            expected = plain.push(event)
            made += len(expected)

            assert together.push(event) == expected, seed
        assert together.counts == plain.counts
    assert seen > 10
    assert made > 400


def test_rules_with_windows_come_and_go_and_move_between_engines() -> None:
    """Added, replaced and removed, saved and brought back, and for a while in batches."""
    moved = 0
    for seed in range(100, 108):
        draw = Random(seed)
        shape = Shape(draw)
        library = ensue.parse(TYPES + "".join(shape.rule(f"R{n}", draw) for n in range(4)))
        rule = partial(shape.rule, draw=draw)
        moved += batches_on_the_way(library, events(draw, 60), draw, rule)
    assert moved > 3


def reading(number: int, milliseconds: int, value: int, key: str = "k1") -> Event:
    data = {"k": key, "v": value, "w": ""}
    return Event(f"e{number}", "s", "T", milliseconds * 1000, data)


def chains(*windows: str) -> ensue.Library:
    ports = "T a where v = 1, T b where v = 2"
    rules = [
        f"Out correlation R{number} ({ports}) a ; b within {window} by k"
        " { case true: push new Out { v = a.v }; }\n"
        for number, window in enumerate(windows)
    ]
    return ensue.parse(TYPES + "".join(rules))


def test_an_event_at_the_edge_of_the_window_counts_and_one_before_it_does_not() -> None:
    run = chains(*["10 ms"] * 3).start("step")
    run.push(reading(1, 0, 1))

    assert len(run.push(reading(2, 10, 2))) == 3
    run.push(reading(3, 20, 1))
    assert run.push(reading(4, 31, 2)) == []


def test_what_has_aged_does_not_fire_later_and_does_not_hinder_what_is_new() -> None:
    run = chains(*["10 ms"] * 3).start("step")
    run.push(reading(1, 0, 1))
    run.push(reading(2, 20, 2))
    run.push(reading(3, 21, 1))

    assert [each.extensions["causes"] for each in run.push(reading(4, 22, 2))] == ["e3,e4"] * 3


def test_rules_of_one_shape_have_windows_of_their_own_length() -> None:
    run = chains("30 ms", "10 ms", "10 ms").start("step")
    run.push(reading(1, 0, 1))

    assert len(groups_in(run)) == 1
    assert [each.extensions["correlation"] for each in run.push(reading(2, 20, 2))] == ["R0"]


def test_a_key_keeps_no_more_moments_than_its_limit() -> None:
    run = chains(*["10 s"] * 3).start("step")
    for number in range(5000):
        run.push(reading(number, 0, 1))
    (group,) = groups_in(run)
    (state,) = group.board.keys.values()

    assert max(len(each) for each in state.came.values()) <= boards.MOST_MOMENTS
    assert len(state.recent) <= boards.FEW_EVENTS
    assert len(run.push(reading(9999, 1, 2))) == 3


def test_keys_that_have_aged_are_let_go() -> None:
    run = chains(*["10 ms"] * 3).start("step")
    for number in range(4000):
        run.push(reading(number, number, 1, key=f"k{number}"))
    (group,) = groups_in(run)

    assert len(group.board.keys) < 2500
