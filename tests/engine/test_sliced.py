"""Many machines of one structure, stepped at once, do what each of them does alone."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import ensue
from ensue.engine.step.rows import structure
from ensue.engine.step.sliced import MOST_FUNCTIONS, Sliced, is_sliced
from ensue.machine.model import Machine
from ensue.machine.plan import plan
from ensue.machine.stepping import NOW, Fired, Starts, Stepper
from tests.machine.runs import golden_correlations, random_correlations

MACHINES = 9


def machines() -> Iterator[tuple[int, Machine]]:
    """All machines without a window that can be one of many: as built, and as they are run."""
    drawn = [*random_correlations(range(80)), *enumerate(golden_correlations())]
    for seed, correlation in drawn:
        planned = plan(correlation)
        for machine in (planned.built, planned.machine):
            if machine is not None and machine.window is None and is_sliced(machine):
                yield seed, structure(machine)


def test_a_pass_of_many_machines_is_a_pass_of_each() -> None:
    seen = 0
    for seed, machine in machines():
        draw = Random(seed)
        sliced, plain = Sliced(machine, is_timed=False), Stepper(machine)
        atoms = {each.input for each in machine.transitions if isinstance(each.input, int)}
        alone: list[Starts] = [dict.fromkeys(machine.initial, NOW) for _ in range(MACHINES)]
        held = [0] * len(sliced.held)
        for _ in range(25):
            read = [{atom for atom in atoms if draw.random() < 0.3} for _ in alone]
            together = _fired(sliced, held, read)
            for number, (active, own) in enumerate(zip(alone, read, strict=True)):
                effects = plain.take(active, frozenset(own)).effects if own else []

                assert sliced.active(held, 1 << number) == active.keys(), machine
                assert together[number] == [e for e in effects if isinstance(e, Fired)], machine
        seen += 1
    assert seen > 100


def _fired(sliced: Sliced, held: list[int], read: list[set[int]]) -> list[list[Fired]]:
    """Take all machines through an event that each reads as some atoms; what fires in each."""
    by_atom: dict[int, int] = {}
    readers = 0
    for number, atoms in enumerate(read):
        for atom in atoms:
            by_atom[atom] = by_atom.get(atom, 0) | 1 << number
            readers |= 1 << number
    take, wanted = sliced.take(sum(1 << atom for atom in by_atom))
    fires = take(held, readers, *(by_atom.get(atom, 0) for atom in wanted)) or []
    return [
        [sliced.fired(branch, what) for branch, what, who in fires if who >> number & 1]
        for number in range(len(read))
    ]


def test_past_its_limit_one_function_serves_all_sets_of_atoms() -> None:
    names = [f"p{number}" for number in range(8)]
    library = ensue.parse(
        "eventtype T {};\n"
        f"T correlation R ({', '.join(f'T {name}' for name in names)}) {' + '.join(names)}"
        " { case true: push p0; }"
    )
    machine = plan(library.checked.correlations[0]).needed_machine
    sliced = Sliced(structure(machine), is_timed=False)
    for atoms in range(1, 2 * MOST_FUNCTIONS):
        take, wanted = sliced.take(atoms)

        assert take([0] * len(sliced.held), 0, *(0 for _ in wanted)) is None
    assert len(sliced._functions) <= MOST_FUNCTIONS + 1
