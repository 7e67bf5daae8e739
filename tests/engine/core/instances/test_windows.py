"""Windows: written out for each mask, written out once for all masks, or stepped."""

from __future__ import annotations

from types import ModuleType

import pytest

import ensue
from ensue.bench.workload import combined
from ensue.engine.core.instances import windows
from ensue.engine.core.instances.filters import GeneratedWindow, WindowedFilter
from ensue.engine.step import StepStream
from ensue.events.event import Event
from ensue.machine.plan import plan
from tests.engine.variations import plainly, with_snapshots
from tests.oracle.generator import Scenario, scenario

SECOND = 1_000_000


def windowed(count: int) -> list[Scenario]:
    found: list[Scenario] = []
    seed = 20_000
    while len(found) < count:
        drawn = scenario(seed)
        if " within " in drawn.library:
            found.append(drawn)
        seed += 1
    return found


@pytest.mark.parametrize(
    ("module", "limits"),
    [
        (windows, {"MOST_TRANSITIONS": -1, "MOST_OF_ONE_KEY": -1}),
        (windows, {"MOST_WRITTEN": 0}),
        (windows, {"MOST_REPEATED": 0}),
    ],
    ids=["stepped", "all masks", "settled apart"],
)
def test_a_window_means_the_same_however_it_is_run(
    module: ModuleType, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = windowed(40)
    expected = [plainly(each) for each in drawn]
    for name, value in limits.items():
        monkeypatch.setattr(module, name, value)

    for each, made in zip(drawn, expected, strict=True):
        assert plainly(each) == made, each
        assert with_snapshots(each, each.seed) == made, each


def repeated(count: int, clauses: str) -> ensue.Library:
    return ensue.parse(
        "eventtype A { attribute string k; };\neventtype Out {};\n"
        f"Out correlation Many (A a) a{{{count}}} within 10 s {clauses}"
        " { case true: push new Out {}; }"
    )


@pytest.mark.parametrize(
    ("count", "clauses", "kind"),
    [(100, "by k", GeneratedWindow), (400, "by k", WindowedFilter), (400, "", GeneratedWindow)],
)
def test_a_long_repetition_fires_when_all_of_it_is_in_the_window(
    count: int, clauses: str, kind: type
) -> None:
    """Written out where it pays, and the same wherever it runs."""
    run = repeated(count, clauses).start("step")
    gap = 10 * SECOND // (count - 1)
    # The first event lies just before the window of the last of so many.
    times = [0, *(SECOND + number * gap for number in range(count))]
    made = [
        run.push(Event(f"e{number}", "s", "A", time, {"k": "x"}))
        for number, time in enumerate(times)
    ]
    engine = run._engine
    assert isinstance(engine, StepStream)

    assert [len(each) for each in made] == [0] * count + [1]
    assert type(next(iter(engine.rules[0].instances.values()))) is kind


@pytest.mark.parametrize("operator", [";", "+"])
def test_what_an_event_does_is_written_in_lines_that_do_not_grow_with_the_ports(
    operator: str,
) -> None:
    lengths = []
    for ports in (30, 60):
        machine = plan(ensue.parse(combined(operator, ports, "within 1 s")).correlations[0]).machine
        assert machine is not None
        steps = windows.WindowSteps(machine)
        lengths.append([len(steps._text.take(1 << atom).lines) for atom in (0, 5, 29)])

    assert lengths[0] == lengths[1]
