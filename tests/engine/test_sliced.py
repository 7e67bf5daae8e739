"""Many machines of a few structures, stepped at once, do what each of them does alone."""

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
    """Of one structure, and of a few that are put together."""
    known = list(machines())
    assert len(known) > 100
    for seed, machine in known:
        draw = Random(seed)
        others = [other for _, other in draw.sample(known, draw.randrange(4))]
        structures = [machine, *others]
        sliced = Sliced(is_timed=False)
        kinds = [sliced.add(each) for each in structures]
        own = [draw.choice(kinds) for _ in range(MACHINES)]
        for number, kind in enumerate(own):
            sliced.masks[kind] |= 1 << number
        alone: list[Starts] = [dict.fromkeys(structures[kind].initial, NOW) for kind in own]
        held = [0] * sliced.size
        for _ in range(25):
            read = [
                {atom for atom in _atoms(structures[kind]) if draw.random() < 0.3} for kind in own
            ]
            together = _fired(sliced, held, own, read)
            for number, (kind, active, atoms) in enumerate(zip(own, alone, read, strict=True)):
                plain = Stepper(structures[kind])
                effects = plain.take(active, frozenset(atoms)).effects if atoms else []
                stands = sliced.structures[kind].active(held, 1 << number)

                assert stands == active.keys(), (seed, number)
                assert together[number] == [e for e in effects if isinstance(e, Fired)], seed


def _atoms(machine: Machine) -> list[int]:
    return sorted({each.input for each in machine.transitions if isinstance(each.input, int)})


def _fired(
    sliced: Sliced, held: list[int], kinds: list[int], read: list[set[int]]
) -> list[list[Fired]]:
    """Take all machines through an event that each reads as some atoms; what fires in each."""
    steps: dict[int, int] = {}
    for number, (kind, atoms) in enumerate(zip(kinds, read, strict=True)):
        for atom in atoms:
            for step in sliced.steps_of(kind, atom):
                steps[step] = steps.get(step, 0) | 1 << number
    take, wanted = sliced.take(sum(1 << step for step in steps))
    fires = take(held, *(steps.get(step, 0) for step in wanted)) or []
    return [
        [
            sliced.structures[kind].fired(branch, what)
            for (kind, branch, what), who in fires
            if who >> number & 1
        ]
        for number in range(len(read))
    ]


def test_structures_that_differ_in_little_share_most_of_their_steps() -> None:
    library = ensue.parse(
        "eventtype T {};\neventtype Out {};\n"
        + "".join(
            f"Out correlation R{number} (T a, T b, T c) {text} {{ case true: push new Out {{}}; }}"
            for number, text in enumerate(["a ; b ; c", "a ; b ; (c + a)", "a ; (b + c)"])
        )
    )
    sliced, alone = Sliced(is_timed=False), 0
    for correlation in library.checked.correlations:
        machine = structure(plan(correlation).needed_machine)
        sliced.add(machine)
        by_itself = Sliced(is_timed=False)
        by_itself.add(machine)
        alone += len(by_itself._steps)

    assert len(sliced._steps) < alone


def test_past_its_limit_one_function_serves_all_sets_of_steps() -> None:
    names = [f"p{number}" for number in range(8)]
    library = ensue.parse(
        "eventtype T {};\n"
        f"T correlation R ({', '.join(f'T {name}' for name in names)}) {' + '.join(names)}"
        " { case true: push p0; }"
    )
    sliced = Sliced(is_timed=False)
    sliced.add(structure(plan(library.checked.correlations[0]).needed_machine))
    for steps in range(1, 2 * MOST_FUNCTIONS):
        take, wanted = sliced.take(steps)

        assert take([0] * sliced.size, *(0 for _ in wanted)) is None
    assert len(sliced._functions) <= MOST_FUNCTIONS + 1
