"""A machine in bits does what it does in sets."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from ensue.machine.bitwise import BitStepper, bits_of, numbers_in
from ensue.machine.model import Bind, Machine
from ensue.machine.plan import plan
from ensue.machine.stepping import NOW, Stepper

from .runs import filter_of, golden_correlations, random_correlations


def machines() -> Iterator[tuple[int, Machine]]:
    """Of all machines without a window: as they are built, and as they are run."""
    drawn = [*random_correlations(range(150)), *enumerate(golden_correlations())]
    for seed, correlation in drawn:
        planned = plan(correlation)
        for machine in (planned.built, planned.machine):
            if machine is not None and machine.window is None:
                yield seed, machine


def assert_the_same_passes(machine: Machine, seed: int, few_readers: int) -> None:
    random = Random(seed)
    plain, quick = Stepper(machine), BitStepper(machine, few_readers)
    active, started = plain.begin()
    bits = quick.first
    assert set(quick.first_timers) == set(started)
    for _ in range(30):
        chosen = random.sample(range(len(machine.atoms)), min(len(machine.atoms), 2))
        atoms = frozenset(chosen[: random.choice([0, 1, 1, 2])])
        timers = [t for t in plain._timers if t in active]
        due = frozenset(timers if timers and random.random() < 0.3 else ())
        if due:
            atoms = frozenset()
        readers = quick.due(due) if due else quick.readers(bits, bits_of(atoms))
        expected = plain.take(active, atoms, due)
        taken = quick.take(bits, readers)
        bits = taken.active

        assert set(numbers_in(bits)) == active.keys()
        assert list(taken.binds) == [e.place for e in expected.effects if isinstance(e, Bind)]
        assert list(taken.effects) == [e for e in expected.effects if not isinstance(e, Bind)]
        assert set(taken.started) == set(expected.started)
        if machine.switches and random.random() < 0.2:
            switch = random.choice(machine.switches)
            if switch.requires in active:
                for state in switch.clear:
                    active.pop(state, None)
                active.update(dict.fromkeys(switch.target, NOW))
                bits = bits_of(active)


@pytest.mark.parametrize("few", [0, 10**9])
def test_random_and_golden_machines_do_the_same_in_bits(few: int) -> None:
    for seed, machine in machines():
        assert_the_same_passes(machine, seed, few)


def test_an_event_that_enables_nothing_is_known_before_a_pass() -> None:
    machine = plan(filter_of(" ; ".join("abcabcabcabc"))).machine
    assert machine is not None
    quick = BitStepper(machine)
    atoms = {getattr(atom, "name", ""): 1 << n for n, atom in enumerate(machine.atoms)}

    assert quick.readers(quick.first, atoms["a"])
    assert not quick.readers(quick.first, atoms["b"])
