"""Golden cases put out the same whatever happens on the way."""

from __future__ import annotations

import pytest

from ensue.engine.sizes import small_sizes

from .comparing import difference
from .golden import GoldenTrial, golden_trials
from .ways import Way, observe

CASES = list(golden_trials())
LOSES_A_TIMEOUT = "ecl-timeout.toml:timeout-first-in-sequential"


def loses_a_timeout(case: GoldenTrial) -> bool:
    return case.name.endswith(LOSES_A_TIMEOUT)


@pytest.mark.parametrize("way", ["step, small", "batch, small", "moved, small"])
def test_golden_cases_put_out_the_same_however_they_are_run(way: str) -> None:
    """Some nine hundred of them, saved, brought back and moved: seconds for each way."""
    cases = [each for each in CASES if way != "batch, small" or not loses_a_timeout(each)]
    found = [difference(each, way) for each in cases]

    assert "\n\n".join(str(each) for each in found if each is not None) == ""


@pytest.mark.xfail(
    strict=True, reason="a rule with a timeout whose table is past its budget loses an output"
)
def test_a_rule_with_a_timeout_goes_on_when_its_table_is_past_its_budget() -> None:
    (case,) = filter(loses_a_timeout, CASES)
    with small_sizes():
        made = observe(case, Way("batch", in_pieces=True, saved=0.2))

    assert made.outputs == case.expected.outputs
