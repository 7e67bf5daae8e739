"""A chain that hands on a token triggers, labels and binds as one that keeps all of its parts."""

from __future__ import annotations

from random import Random

import pytest

from ensue.lang.syntax import FilterCorrelation
from ensue.machine.building.from_filter import machine_of_filter
from ensue.machine.building.labels import needs_memory
from ensue.machine.model import Bind, Machine
from ensue.machine.stepping import Fired, Stepper
from tests.machine.runs import filter_of, golden_correlations, random_correlations

KEPT = 10**9

Trigger = tuple[int, int, frozenset[str], dict[str, int]]
"""When which branch fired, its labels, and the number of the event that each port is bound to."""


def triggers(machine: Machine, seed: int, length: int = 60) -> list[Trigger]:
    random, stepper = Random(seed), Stepper(machine)
    active, _ = stepper.begin()
    ports = {place: port for b in machine.branches for place, port, _ in b.places}
    names = sorted({str(atom) for atom in machine.atoms})
    numbers = {str(atom): number for number, atom in enumerate(machine.atoms)}
    bound: dict[int, int] = {}
    found: list[Trigger] = []
    for now in range(length):
        size = min(len(names), random.choice([1, 1, 1, 2]))
        atoms = frozenset(numbers[each] for each in random.sample(names, size))
        for effect in stepper.take(active, atoms).effects:
            if isinstance(effect, Bind):
                bound[effect.place] = now
            elif isinstance(effect, Fired):
                first = any(getattr(t.effect, "first", False) for t in machine.transitions)
                choose = min if first else max
                events: dict[str, int] = {}
                for place in effect.places:
                    port, at = ports[place], bound[place]
                    events[port] = choose(events.get(port, at), at)
                found.append((now, effect.branch, effect.labels, events))
    return found


def assert_the_same(correlation: object, seed: int) -> bool:
    assert isinstance(correlation, FilterCorrelation)
    kept = triggers(machine_of_filter(correlation, long_chain=KEPT), seed)
    assert triggers(machine_of_filter(correlation, long_chain=2), seed) == kept
    return bool(kept)


def test_random_and_golden_filters_trigger_alike() -> None:
    drawn = [*random_correlations(range(300)), *enumerate(golden_correlations())]
    fired = [
        assert_the_same(correlation, seed)
        for seed, correlation in drawn
        if isinstance(correlation, FilterCorrelation)
        and not needs_memory(correlation)
        and correlation.clauses.within is None
    ]

    assert sum(fired) > 100


@pytest.mark.parametrize("bind", ["bind first", "bind last"])
@pytest.mark.parametrize(
    "text",
    [
        "a{3} ; b",
        "a ; b{3} ; c",
        "(a + b){2} ; (b | c){3}",
        "((a ; b){2} | c){2}",
        "((a ; b) | c) ; b ; a",
        "(l1:a | b) ; l2:(b ; c) ; a{2}",
        "l1:(a{2} + b{2}) | l2:(c ; c ; a)",
        "(a{2} ; (b + (a ; c))) || (c ; b ; a)",
    ],
)
def test_nested_chains_trigger_alike(text: str, bind: str) -> None:
    correlation = filter_of(text, clauses=bind)
    fired = [assert_the_same(correlation, seed) for seed in range(40)]

    assert any(fired)
