"""However the step engine is run, it puts out the same: events, order and ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.casefile import Case, find_case_files, read_cases
from ensue.errors import EventError
from ensue.events.cloudevents import decode
from ensue.events.conformance import conform
from tests.oracle.agreement import observe_oracle
from tests.oracle.generator import Scenario, scenario

from .variations import plainly, table_states, with_other_rules, with_snapshots

SEEDS = 120
SEEDS_A_TEST = 30
CASES = Path(__file__).parents[2] / "cases"


def golden_scenarios() -> list[Scenario]:
    """The golden cases that run, as scenarios."""
    found = []
    for file in find_case_files(CASES):
        for number, case in enumerate(read_cases(file)):
            if not case.expected.errors:
                found.append(_scenario(number, case))
    return found


def _scenario(number: int, case: Case) -> Scenario:
    text = case.library if isinstance(case.library, str) else case.library.read_text()
    types = ensue.parse(text).checked.types
    events: list[dict[str, Any]] = []
    for members in case.events:
        event = dict(members)
        try:
            conform(decode(json.dumps(event)), types)
        except EventError:
            continue
        events.append(event)
    return Scenario(number, text, events, case.lateness, case.until)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_TEST))
def test_random_rules_put_out_the_same_whatever_happens_on_the_way(first: int) -> None:
    """Saved and brought back, on small tables, beside rules that come and go, and explained."""
    for seed in range(first, first + SEEDS_A_TEST):
        drawn = scenario(seed)
        expected = observe_oracle(drawn, ensue.parse(drawn.library))

        assert plainly(drawn) == expected, drawn
        assert with_snapshots(drawn, seed) == expected, drawn
        assert with_other_rules(drawn, seed) == expected, drawn
        assert plainly(drawn, explain=True) == expected, drawn
        for states in (1, 3):
            with table_states(states):
                assert with_snapshots(drawn, seed) == expected, drawn


def test_golden_cases_put_out_the_same_with_snapshots_and_on_small_tables() -> None:
    """The plain run of each case is compared with its expectation elsewhere."""
    for each in golden_scenarios():
        expected = plainly(each)

        assert with_snapshots(each, each.seed) == expected, each
        with table_states(3):
            assert plainly(each) == expected, each
