"""Windows of many places, event by event."""

from __future__ import annotations

import pytest

import ensue
from ensue.events.event import Event

SECOND = 1_000_000


def repeated(count: int, clauses: str) -> ensue.Library:
    return ensue.parse(
        "eventtype A { attribute string k; };\neventtype Out {};\n"
        f"Out correlation Many (A a) a{{{count}}} within 10 s {clauses}"
        " { case true: push new Out {}; }"
    )


@pytest.mark.parametrize(("count", "clauses"), [(100, "by k"), (400, "by k"), (400, "")])
def test_a_long_repetition_fires_when_all_of_it_is_in_the_window(count: int, clauses: str) -> None:
    run = repeated(count, clauses).start("step")
    gap = 10 * SECOND // (count - 1)
    # The first event lies just before the window of the last of so many.
    times = [0, *(SECOND + number * gap for number in range(count))]
    made = [
        run.push(Event(f"e{number}", "s", "A", time, {"k": "x"}))
        for number, time in enumerate(times)
    ]

    assert [len(each) for each in made] == [0] * count + [1]
