"""Runs machines over random streams, and writes down all that they do.

Two machines do the same if their logs are equal: effects with their times and order, whatever the
numbers of their states are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import ensue
from ensue.casefile import find_case_files, read_cases
from ensue.errors import EnsueError
from ensue.lang.syntax import Correlation
from ensue.machine.model import Machine, State, Switch, Timer
from ensue.machine.stepping import NOW, PassResult, Starts, Stepper
from tests.oracle.generator import scenario

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000

Moment = tuple[int, frozenset[str], tuple[str, str] | None]
"""A step of time, the atoms of an event by their text, and a label that is changed after it."""


def moments(machine: Machine, seed: int, length: int = 30) -> list[Moment]:
    """A random stream for a machine and all that are made from it."""
    random = Random(seed)
    atoms = [str(atom) for atom in machine.atoms]
    changes = [(switch.kind, switch.label) for switch in machine.switches]
    found: list[Moment] = []
    for _ in range(length):
        size = min(len(atoms), random.choice([0, 1, 1, 1, 2, 3]))
        change = random.choice(changes) if changes and random.random() < 0.2 else None
        found.append(
            (
                random.choice([0, 1, 1, 2, 5]) * SECOND // 2,
                frozenset(random.sample(atoms, size)),
                change,
            )
        )
    return found


class MachineRun:
    """One machine over one stream. `log` holds its effects as text."""

    def __init__(self, machine: Machine, small: int) -> None:
        self.log: list[str] = []
        self._machine = machine
        self._stepper = Stepper(machine, small)
        self._atoms = {str(atom): number for number, atom in enumerate(machine.atoms)}
        self._switches: dict[tuple[str, str], Switch] = {
            (each.kind, each.label): each for each in machine.switches
        }
        self._active: Starts
        self._timeouts: dict[State, int] = {}
        self._active, started = self._stepper.begin()
        self._now = 0
        self._start(started)

    def go(self, stream: list[Moment]) -> list[str]:
        for step, atoms, change in stream:
            until = self._now + step
            while self._timeouts and min(self._timeouts.values()) <= until:
                self._now = min(self._timeouts.values())
                due = frozenset(s for s, at in self._timeouts.items() if at <= self._now)
                self._note(self._stepper.take(self._active, due=due, now=self._time()))
            self._now = until
            known = frozenset(self._atoms[each] for each in atoms if each in self._atoms)
            self._note(self._stepper.take(self._active, known, now=self._time()))
            if change is not None:
                self._switch(self._switches[change])
                self._note(self._stepper.take(self._active, now=self._time()))
        return self.log

    def _time(self) -> float:
        return NOW if self._machine.window is None else self._now

    def _switch(self, switch: Switch) -> None:
        if switch.requires in self._active:
            for state in switch.clear:
                self._active.pop(state, None)
            self._active.update(dict.fromkeys(switch.target, NOW))

    def _note(self, taken: PassResult) -> None:
        self.log += [f"{self._now}: {effect}" for effect in taken.effects]
        self._timeouts = {s: at for s, at in self._timeouts.items() if s in self._active}
        self._start(taken.started)

    def _start(self, started: list[Timer]) -> None:
        for timer in started:
            if timer.state in self._active:
                self._timeouts[timer.state] = self._now + timer.after


def log(machine: Machine, stream: list[Moment], small: int = 24) -> list[str]:
    """What a machine does; `small` says up to which size it is gone through without an index."""
    return MachineRun(machine, small).go(stream)


def random_correlations(seeds: range) -> Iterator[tuple[int, Correlation]]:
    for seed in seeds:
        for correlation in ensue.parse(scenario(seed).library).correlations:
            yield seed, correlation


@cache
def golden_correlations() -> tuple[Correlation, ...]:
    """Every correlation of every golden case that has a library without errors."""
    found: dict[Correlation, None] = {}
    for file in find_case_files(ROOT / "cases"):
        for case in read_cases(file):
            try:
                text = case.library
                library = ensue.parse(text) if isinstance(text, str) else ensue.load(text)
                found.update(dict.fromkeys(library.correlations))
            except EnsueError:
                continue
    return tuple(found)


def correlation_of(text: str) -> Correlation:
    """The first correlation of a library whose event type `T` is declared for it."""
    library = ensue.parse(f"eventtype T {{ attribute long v; }}; eventtype Told {{}};\n{text}")
    return library.correlations[0]


def filter_of(expression: str, ports: str = "T a, T b, T c", clauses: str = "") -> Correlation:
    return correlation_of(
        f"T correlation C ({ports}) {expression} {clauses} {{ case true: push new T {{ v = 1 }}; }}"
    )


def ecl_of(expression: str, ports: str = "T a, T b, T c") -> Correlation:
    return correlation_of(f"Told ecl C ({ports}) {{ {expression} }}")
