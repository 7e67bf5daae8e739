"""What the harness says where an engine and its judge differ."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ensue.events.event import Event

from .comparing import EVERY_WAY, compare, difference, main, ways_for
from .kinds import KINDS, trial
from .trials import Members, ReferenceTrial

RULES = """
eventtype A { attribute long n; }; eventtype Out { attribute long n; };
Out correlation Pairs (A a, A b) a ; b { case true: push new Out { n = b.n }; }
"""
EVENTS = [Event(f"e{n}", "s", "A", n, {"n": n}) for n in range(16)]


class WithoutSevens(ReferenceTrial):
    """Judged by somebody who does not see the number seven."""

    def outputs(self, places: Sequence[int], until: int | None) -> list[Members]:
        return [each for each in super().outputs(places, until) if each["data"]["n"] != 7]


class Faulty(ReferenceTrial):
    """Given to the engines as the wrong kind of events."""

    @property
    def in_order(self) -> list[Event]:
        return [*super().in_order, Event("bad", "s", "A", 99, {"n": "no number"})]


def test_what_differs_is_made_small_and_named() -> None:
    with pytest.raises(AssertionError) as raised:
        compare(WithoutSevens(3, RULES, EVENTS, None), ["batch, in pieces"])

    told = str(raised.value)
    assert "batch, in pieces:" in told
    assert '"n": 7' in told
    assert "e7" in told
    assert told.count("Event(") <= 2


def test_a_crash_is_a_difference() -> None:
    found = difference(Faulty(3, RULES, EVENTS, None), "step, saved")

    assert found is not None
    assert "EventError" in found.given.raised


def test_what_a_way_cannot_be_asked_is_left_out() -> None:
    late = next(each for seed in range(99) if (each := trial("usual", seed)).lateness is not None)

    assert "as tables" not in list(ways_for(late))
    assert "step, rules changed" not in list(ways_for(ReferenceTrial(1, RULES, EVENTS, None)))
    assert list(ways_for(trial("related", 1))) == [*EVERY_WAY]


def test_one_trial_is_shown_and_compared_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["related", "17", "step", "batch"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("// seed 17")
    assert "'runs': 2" in told

    assert main(["usual"]) == 2
    assert ", ".join(KINDS) in capsys.readouterr().out
