"""Dense tables hold every state; minimised, they have no two that do the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

from ensue.machine.dense import DenseTable, dense_table
from ensue.machine.model import Machine
from ensue.machine.passes.minimising import minimise
from ensue.machine.plan import plan
from tests.machine.runs import ecl_of, filter_of, random_correlations


def machine_of(correlation: object) -> Machine:
    machine = plan(correlation).machine  # type: ignore[arg-type]
    assert machine is not None
    return machine


def symbols(machine: Machine) -> list[frozenset[int]]:
    atoms = range(len(machine.atoms))
    return [frozenset(each) for size in (1, 2) for each in combinations(atoms, size)]


def small(correlation: object) -> tuple[DenseTable, DenseTable]:
    machine = machine_of(correlation)
    table = dense_table(machine, symbols(machine))
    assert table is not None
    return table, minimise(table)


def log(table: DenseTable, seed: int) -> Sequence[object]:
    random, state, made = Random(seed), table.first, []
    for _ in range(60):
        cell = table.rows[state][random.randrange(len(table.inputs))]
        state = cell.to
        made.append((cell.effects, table.watched[state]))
    return made


def test_states_that_do_the_same_become_one() -> None:
    """Whether `a` or `b` came first, only `c` is waited for."""
    table, least = small(ecl_of("repeat { notify { sequential { select { a, b }, c } } }"))

    assert len(least.rows) == 2
    assert len(least.rows) <= len(table.rows)


def test_labels_and_bindings_keep_states_apart() -> None:
    """Which of the two was seen shows in the labels of the trigger."""
    _, least = small(filter_of("(l1:a | l2:b) ; c"))

    assert len(least.rows) == 4


def test_a_table_past_its_budget_is_not_written_down() -> None:
    machine = machine_of(filter_of("a + b + c"))

    assert dense_table(machine, symbols(machine), budget=4) is None


def test_a_machine_with_timeouts_has_no_dense_table() -> None:
    machine = machine_of(ecl_of("notify { timeout(1 s) }"))

    assert dense_table(machine, []) is None


def test_minimising_changes_nothing_that_random_machines_do() -> None:
    seen = 0
    for seed, correlation in random_correlations(range(80)):
        machine = plan(correlation).machine
        if machine is None or machine.window is not None:
            continue
        table = dense_table(machine, symbols(machine), budget=300)
        if table is None or not table.inputs:
            continue
        least = minimise(table)
        seen += 1

        assert log(least, seed) == log(table, seed), seed
        assert len(least.rows) <= len(table.rows)
        assert minimise(least) == least
    assert seen > 30
