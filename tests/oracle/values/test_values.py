"""The oracle of values: it reads the definitions as the worked examples and the first oracle do."""

from __future__ import annotations

import json
import tomllib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import ensue
from ensue.casefile.case import Case
from ensue.casefile.reading import find_case_files, read_cases
from ensue.errors import EventError
from ensue.events.cloudevents import decode
from ensue.events.conformance import conform
from ensue.lang.derived.relating import relates_events
from tests.agreement.observed import Observed
from tests.agreement.trials import RelatedTrial, event_of
from tests.oracle import oracle
from tests.oracle.derived import Deriving

from . import model
from .generator import scenario
from .matches import Read, Stretch
from .model import (
    Binary,
    Clauses,
    Const,
    Label,
    Moment,
    New,
    Node,
    Not,
    Pair,
    Place,
    Rule,
    Scenario,
    Timeout,
    Times,
    Value,
    expanded,
)
from .reading import Output, judge
from .smaller import candidates
from .text import read_model, read_scenario

CASES = Path(__file__).parents[3] / "cases"
WORKED = CASES / "values.toml"
SECOND = 1_000_000


def worked_cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(WORKED.read_text())["case"]
    return found


def as_worked(output: Output) -> str:
    clock = f"timer@{output['time'] // SECOND}"
    trigger = clock if output["trigger"] == "timer" else output["trigger"]
    labels = [output["labels"]] if output["labels"] else []
    return " ".join([trigger, output["type"], *labels, json.dumps(output["data"])])


@pytest.mark.parametrize("case", worked_cases(), ids=lambda case: str(case["name"]))
def test_the_oracle_puts_out_what_the_worked_example_says(case: dict[str, Any]) -> None:
    """Triggers, types, labels and data, in order."""
    assert [as_worked(each) for each in judge(read_scenario(case))] == case["outputs"]


def test_a_model_and_its_text_are_the_same() -> None:
    """What the engines read is what the oracle judges."""
    for seed in range(300):
        drawn = scenario(seed)

        assert str(read_model(str(drawn.model))) == str(drawn.model)


def test_a_seed_always_gives_the_same_scenario() -> None:
    """A failing seed can be replayed."""
    assert str(scenario(17)) == str(scenario(17))


def test_most_rules_put_something_out() -> None:
    """A generator whose rules never fire would agree with anything."""
    assert sum(bool(judge(scenario(seed))) for seed in range(200)) > 100


def test_both_oracles_read_plain_rules_alike() -> None:
    """Without the clauses of section 10, section 3 is what holds."""
    for seed in range(150):
        drawn = RelatedTrial(without_values(scenario(seed)))
        checked = drawn.library.checked
        first = oracle.run(checked.tree, checked.types, drawn.events, until=drawn.until)

        assert Observed.of(first.outputs) == drawn.expected, f"\n{drawn}"


def without_values(drawn: Scenario) -> Scenario:
    """The scenario without what section 10 adds."""
    rules = tuple(plain_rule(each) for each in drawn.model.rules)
    return replace(drawn, model=replace(drawn.model, rules=rules))


def plain_rule(rule: Rule) -> Rule:
    bind = rule.clauses.bind if rule.clauses.bind != "latest" else None
    clauses = Clauses(within=rule.clauses.within, by=rule.clauses.by, bind=bind)
    cases = []
    for case in rule.cases:
        push = case.push
        if isinstance(push, New):
            values = [each for each in push.values if is_plain(each[1])]
            push = replace(push, values=tuple(values))
        beside = tuple(each for each in case.beside if is_plain(each[1]))
        cases.append(replace(case, push=push, beside=beside))
    branches = tuple(plain_node(each) for each in rule.branches)
    return replace(rule, clauses=clauses, cases=tuple(cases), branches=branches)


def is_plain(value: Value) -> bool:
    if isinstance(value, Binary):
        return is_plain(value.left) and is_plain(value.right)
    if isinstance(value, Not):
        return is_plain(value.body)
    return isinstance(value, Const | model.Read)


def plain_node(node: Node) -> Node:
    if isinstance(node, Place):
        return node
    if isinstance(node, Label | Times):
        return replace(node, body=plain_node(node.body))
    left = plain_node(node.left)
    return (
        left if isinstance(node.right, Timeout) else Pair(node.sign, left, plain_node(node.right))
    )


def test_what_is_tried_for_a_difference_is_smaller() -> None:
    """Every candidate has less in it, so that making smaller comes to an end."""
    drawn = scenario(1)

    assert all(size_of(each) < size_of(drawn) for each in candidates(drawn))


def size_of(drawn: Scenario) -> int:
    """The length of its text, where a case without labels has nothing for them."""
    return len(str(drawn).replace("case true:", "case:"))


def test_no_match_starts_later_than_the_latest() -> None:
    """The recursive definition of the latest match agrees with trying every start."""
    asked = 0
    for seed in range(300):
        rng = Random(seed)
        drawn = scenario(seed)
        reads = [
            Read(at, at // 2, frozenset(rng.sample("abcd", rng.choice([0, 1, 1, 2]))))
            for at in range(8)
        ]
        stretch = Stretch(reads)
        for node in (expanded(each) for each in drawn.model.rules[0].branches):
            match = stretch.latest(node, 0, 8)
            starts = [start for start in range(8) if stretch.matches(node, start, 8)]
            asked += bool(starts)

            assert (match and match.start) == max(starts, default=None)

            # The latest in which the event takes part may have to start earlier than one of those.
            match = stretch.latest_with(node, 0, 8)
            starts = [start for start in range(8) if stretch.takes_part(node, start, 8)]

            assert (match is not None) == bool(starts)
            assert match is None or match.start in starts
    assert asked > 100


def judged_cases() -> list[Case]:
    """The golden cases of rules that relate events, as far as the small reader reads them."""
    cases = [case for file in find_case_files(CASES) for case in read_cases(file)]
    return [case for case in cases if is_judged(case)]


def is_judged(case: Case) -> bool:
    if case.expected.errors or not isinstance(case.library, str):
        return False
    library = ensue.parse(case.library)
    if not any(relates_events(each) for each in library.checked.correlations):
        return False
    try:
        model = read_model(case.library)
    except (AssertionError, IndexError, KeyError, ValueError):
        return False  # functions and nested data are beyond what the oracle evaluates itself
    return all(rule.cases for rule in model.rules) and "." not in str(model.types)


@pytest.mark.parametrize("case", judged_cases(), ids=lambda case: f"{case.file.stem}-{case.name}")
def test_the_oracle_passes_the_golden_case(case: Case) -> None:
    """Rules over several events put out what the case expects."""
    assert isinstance(case.library, str)
    library = ensue.parse(case.library)
    deriving = Deriving(library.checked.tree, library.checked.types)
    events = []
    for members in case.events:
        with suppress(EventError):
            event = deriving.given(conform(decode(json.dumps(members)), library.checked.types))
            moment = Moment(event.id, event.source, event.type, event.time, dict(event.attributes))
            events.append(moment)
    events.sort(key=lambda each: each.time)

    outputs = judge(Scenario(0, read_model(case.library), tuple(events), case.until))

    assert len(outputs) == len(case.expected.outputs), outputs
    for wanted, output in zip(case.expected.outputs, outputs, strict=True):
        assert wanted.is_met_by(event_of(output)), f"wanted {wanted}, got {output}"
