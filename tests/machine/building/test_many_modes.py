"""Many modes are entered in several transitions, and do what a few do in one each."""

from __future__ import annotations

import pytest

import ensue
from ensue.events.event import Event
from ensue.lang.syntax import EclCorrelation
from ensue.machine.building.from_ecl import machine_of_ecl
from ensue.machine.passes import optimise
from tests.machine.runs import SECOND, correlation_of, ecl_of, golden_correlations, log, moments

AT_ONCE = 10**9

NESTED = [
    "modes { in (a) do { repeat { notify { c } } } in (b) do { notify { sequential { c, c } } } }",
    "modes { in (a) do { notify { timeout(1 s) } } in (c) do { repeat { notify { b } } } }",
    "modes { in (timeout(1 s)) do { repeat { notify { a } } } in (b) do { notify { true } } }",
    "modes { in (notify { a }) do { notify { b } } in (sequential { a, b }) do { notify { c } } }",
    "repeat { do { modes { in (a) do { true } in (b) do { push(Told) { true } } } } unless { c } }",
    "modes { in (a) do { modes { in (b) do { notify { c } } in (c) do { notify { timeout(1 s) } } "
    "} } in (select { sequential { b, c }, timeout(2 s) }) do { repeat { notify { a } } } }",
]


def assert_the_same(correlation: object, seed: int) -> bool:
    assert isinstance(correlation, EclCorrelation)
    one_each = machine_of_ecl(correlation, many_modes=AT_ONCE)
    several = machine_of_ecl(correlation, many_modes=1)
    stream = moments(one_each, seed)
    expected = log(one_each, stream)

    assert log(several, stream) == expected, correlation.name
    assert log(optimise(several), stream) == expected, correlation.name
    return bool(expected)


@pytest.mark.parametrize("expression", NESTED)
def test_modes_inside_and_around_others_do_the_same(expression: str) -> None:
    correlation = ecl_of(expression)

    assert sum(assert_the_same(correlation, seed) for seed in range(40)) > 0


def test_golden_modes_do_the_same() -> None:
    golden = [each for each in golden_correlations() if isinstance(each, EclCorrelation)]

    assert sum(assert_the_same(each, seed) for seed, each in enumerate(golden)) > 0


def twenty_modes() -> str:
    """Every third mode waits for the clock, and every guard for a number, as another does."""
    bodies = [
        "repeat { notify { a } }",
        "push(Told) { accumulate { a, b } }",
        "notify { timeout(2 s) }",
    ]
    modes = [f"in (<v = {n % 10}>) do {{ {bodies[n % 3]} }}" for n in range(20)]
    return f"Told ecl C (T a, T b where v > 10) {{ modes {{ {' '.join(modes)} }} }}"


@pytest.mark.parametrize("engine", ["step", "batch"])
def test_twenty_modes_run_as_by_the_definitions(engine: str) -> None:
    library = ensue.parse(
        f"eventtype Told {{}} eventtype T {{ attribute long v; }} {twenty_modes()}"
    )
    numbers = [3, 7, 7, 12, 2, 2, 9, 0, 40, 41, 5, 11, 11, 1, 40, 4, 8, 40, 40, 6, 30, 31]
    events = [
        Event.of("T", time=n * SECOND * 3 // 2, id=f"e{n}", data={"v": number})
        for n, number in enumerate(numbers)
    ]
    expected = list(library.run(events, engine="reference"))

    assert len(expected) > 5
    assert list(library.run(events, engine=engine)) == expected


def test_the_sets_of_many_modes_grow_with_their_number() -> None:
    def size(count: int) -> int:
        modes = " ".join("in (a) do { notify { b } }" for _ in range(count))
        correlation = correlation_of(f"Told ecl C (T a, T b) {{ modes {{ {modes} }} }}")
        assert isinstance(correlation, EclCorrelation)
        transitions = machine_of_ecl(correlation).transitions
        return sum(len(each.clear) + len(each.target) for each in transitions)

    assert size(400) < 2.2 * size(200)
