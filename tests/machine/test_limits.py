"""Limits have names; past the limits of a table a machine runs on as before."""

from __future__ import annotations

import pickle
from random import Random
from time import process_time

import pytest

from ensue.errors import LimitError
from ensue.machine.determinise import MachineMove, MachineTable
from ensue.machine.limits import MachineLimits
from ensue.machine.model import Bind, Emit, Machine
from ensue.machine.plan import plan
from ensue.machine.stepping import Fired

from .runs import correlation_of, ecl_of, filter_of, random_correlations


def machine_of(correlation: object) -> Machine:
    machine = plan(correlation).machine  # type: ignore[arg-type]
    assert machine is not None
    return machine


def effects(
    table: MachineTable, stream: list[frozenset[int]]
) -> list[tuple[Emit | Bind | Fired, ...]]:
    state, made = table.first, []
    for atoms in stream:
        move: MachineMove = table.move(state, ("atoms", atoms))
        state = move.to
        made.append(move.effects)
    return made


def count_outputs(table: MachineTable, stream: list[frozenset[int]]) -> int:
    found = [effect for each in effects(table, stream) for effect in each]
    return sum(isinstance(effect, Fired | Emit) for effect in found)


def accumulation(ports: int) -> Machine:
    names = ", ".join(f"p{n}" for n in range(ports))
    declared = ", ".join(f"T p{n} where v = {n}" for n in range(ports))
    return machine_of(
        correlation_of(
            f"Told ecl C ({declared}) {{ repeat {{ notify {{ accumulate {{ {names} }} }} }} }}"
        )
    )


@pytest.mark.parametrize(
    "budget", [(0, 0, 0), (1, 100, 1000), (100, 1, 1000), (100, 100, 3), (5, 5, 20)]
)
def test_a_tiny_budget_changes_nothing_that_comes_out(budget: tuple[int, int, int]) -> None:
    """States, moves and active states are bounded one by one."""
    for seed, correlation in random_correlations(range(60)):
        machine = plan(correlation).machine
        if machine is None or machine.window is not None or not machine.atoms:
            continue
        random = Random(seed)
        stream = [frozenset({random.randrange(len(machine.atoms))}) for _ in range(40)]
        small = MachineTable(machine, *budget)

        assert effects(small, stream) == effects(MachineTable(machine), stream)
        assert len(small.states) <= budget[0]


def test_a_forty_way_accumulation_is_planned_quickly_and_runs() -> None:
    began = process_time()
    table = MachineTable(accumulation(40))
    took = process_time() - began

    random = Random(3)
    stream = [frozenset({random.randrange(40)}) for _ in range(2000)]
    # All of its 2**40 states would never be through.
    assert took < 5
    assert count_outputs(table, stream) > 5
    assert len(table.states) <= 2001


@pytest.mark.parametrize(("text", "count"), [("a{5000}", 5000), ("(a + a){2000}", 2000)])
def test_a_long_repetition_has_few_states(text: str, count: int) -> None:
    machine = machine_of(filter_of(text, "T a"))
    table = MachineTable(machine)

    assert len(machine.names) < 40
    assert count_outputs(table, [frozenset({0})] * (2 * count)) == 2
    assert max(len(state.active) for state in table.states) < 20


def test_a_bound_of_a_million_rounds_has_few_states() -> None:
    machine = machine_of(ecl_of("repeat(1000000) { notify { a } }"))

    assert len(machine.names) < 60


def test_a_machine_that_is_too_large_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(LimitError, match="limit `states`: there are 51 or more") as caught:
        plan(filter_of("a{200}", clauses="within 1 s"), limits=MachineLimits(states=50))

    assert (caught.value.name, caught.value.given, caught.value.allowed) == ("states", 51, 50)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_plan_says_which_form_and_why() -> None:
    aborting = correlation_of(
        "T correlation C (T a, T b) l1:a ; b { case true: push new T { v = 1 }; abort(l1); }"
    )
    forms = {
        "table": filter_of("a ; b"),
        "linear": filter_of("a ; b", clauses="within 1 s"),
        "memory": aborting,
    }

    for form, correlation in forms.items():
        assert plan(correlation).form == form
    assert "`within`" in plan(forms["linear"]).why
    assert "label `l1` is aborted to the left of a `;`" in plan(aborting).why
    assert plan(aborting).machine is None


def test_bindings_that_need_memory_leave_the_machine_to_be_looked_at() -> None:
    planned = plan(filter_of("a ; b", clauses="within 1 s bind first"))

    assert planned.form == "memory"
    assert planned.machine is not None
