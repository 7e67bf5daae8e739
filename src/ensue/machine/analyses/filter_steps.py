"""The steps of a filter for analyses: on its machine, or on one machine for each way of its labels.

In come the active states and the ports that an event matches; out come the branches that trigger,
each with its active labels and bound ports. `MachineSteps` takes the machine of a filter. A filter
with a label that is aborted to the left of a `;` has no machine, since the abort decides which
*earlier* events count for the right side.

`ForeseenSteps` follows such a filter in every way in which its labels may yet be changed
(`label_ways`): each label stays *alive*, will be *out*, or will be *fresh* (revived later, so that
nothing inside it has been read so far). For each way there is a machine without changes, and all of
these machines read every event. When a label is changed, the machine of another way counts, which
has the right states already. No events are kept, so that the number of situations is finite, also
with a window.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ensue.lang.derived.parts import changed_labels, labels_in
from ensue.lang.syntax import (
    Both,
    Either,
    Filter,
    FilterCorrelation,
    Labelled,
    PortRef,
    Then,
    Timeout,
    Times,
)
from ensue.machine.analyses.deadline import poll
from ensue.machine.analyses.label_ways import TooManyWaysError, label_ways
from ensue.machine.building.from_filter import machine_of_filter
from ensue.machine.model import Atom, Fire, Machine, PortAtom
from ensue.machine.stepping import NOW, Fired, Starts, Stepper

FORESEEN_WAYS = 2187
"""The most ways of the labels of a branch: 3 for each of seven labels that change independently.
Labels that change together have fewer ways."""

REMEMBERED_STEPS = 200_000
"""The size of the cache of steps."""

FORESEEN_STATES = 200_000
"""The most states of the machines of all ways together."""

Kind = Literal["abort", "revive"]
LabelPath = tuple[str, ...]
"""The labels around a port that may change, from the outside in."""


@dataclass(frozen=True, slots=True)
class Triggered:
    """A branch that has triggered, with its active labels and its bound ports."""

    branch: int
    labels: frozenset[str]
    ports: frozenset[str]


class FilterSteps(Protocol):
    """The steps of a filter, which change the active states of a configuration."""

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms of the filter: an event is a set of them."""

    @property
    def size(self) -> int:
        """The work of one step, in transitions."""

    def begin(self) -> Starts: ...

    def take(self, active: Starts, atoms: frozenset[int], now: float) -> list[Triggered]:
        """Read an event; without atoms, find the branches that changes of labels have completed."""

    def is_aborted(self, active: Starts, label: str) -> bool: ...

    def switch(self, active: Starts, kind: Kind, label: str) -> None:
        """Abort or revive a label; does nothing if the label is in that state already."""


class MachineSteps:
    """The steps of a filter on its machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._stepper = Stepper(machine)
        self._switches = {(each.kind, each.label): each for each in machine.switches}
        self._aborted = {s.label: s.requires for s in machine.switches if s.kind == "revive"}
        self._ports = {place: port for b in machine.branches for place, port, _ in b.places}

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return self._machine.atoms

    @property
    def size(self) -> int:
        return len(self._machine.transitions) + 1

    @property
    def machine(self) -> Machine:
        return self._machine

    def begin(self) -> Starts:
        return self._stepper.begin()[0]

    def take(self, active: Starts, atoms: frozenset[int], now: float) -> list[Triggered]:
        return [
            Triggered(each.branch, each.labels, frozenset(self._ports[p] for p in each.places))
            for each in self._stepper.take(active, atoms, now=now).effects
            if isinstance(each, Fired)
        ]

    def is_aborted(self, active: Starts, label: str) -> bool:
        return label in self._aborted and self._aborted[label] in active

    def switch(self, active: Starts, kind: Kind, label: str) -> None:
        switch = self._switches[kind, label]
        if switch.requires in active:
            for state in switch.clear:
                active.pop(state, None)
            active.update(dict.fromkeys(switch.target, NOW))


# --- a machine for each way ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Way:
    """A branch whose labels in `out` will be aborted, and those in `fresh` revived later than now.

    States are numbered from `offset` on. `machine` is None where nothing is left of the branch.
    """

    out: frozenset[str]
    fresh: frozenset[str]
    offset: int
    machine: Machine | None
    stepper: Stepper | None
    read: tuple[tuple[str, int], ...]
    """The ports that are read, each with its atom, without those inside of fresh labels."""


class ForeseenSteps:
    """The steps of a filter in every way in which its labels may be changed."""

    def __init__(self, correlation: FilterCorrelation) -> None:
        self._ports = [port.name for port in correlation.ports]
        self._changing = changed_labels(correlation)
        self._marks = {label: -1 - n for n, label in enumerate(sorted(self._changing))}
        self._branches: list[dict[tuple[frozenset[str], frozenset[str]], _Way]] = []
        offset = 0
        for branch in correlation.branches:
            ways = list(self._ways(correlation, branch, offset))
            self._branches.append({(way.out, way.fresh): way for way in ways})
            offset = max(_end(way) for way in ways)
        self._labels = [frozenset(_labels(branch)) for branch in correlation.branches]
        self._way_of: list[_Way] = []
        """For each state, the way that it belongs to."""
        for way in (way for branch in self._branches for way in branch.values()):
            self._way_of += [way] * (_end(way) - way.offset)
        self._steps: dict[tuple[Hashable, ...], Starts] = {}

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return tuple(PortAtom(name) for name in self._ports)

    @property
    def size(self) -> int:
        # Ways with equal `out` share a machine, and mostly their states and steps.
        ways = [way for branch in self._branches for way in branch.values()]
        machines = {id(way.machine): way.machine for way in ways}.values()
        return len(ways) + sum(len(each.transitions) for each in machines if each is not None)

    def begin(self) -> Starts:
        active: Starts = {}
        for number in range(len(self._branches)):
            self._forget(active, number)
        return active

    def take(self, active: Starts, atoms: frozenset[int], now: float) -> list[Triggered]:
        if atoms:
            self._read(active, frozenset(self._ports[each] for each in atoms), now)
        found = []
        aborted = self._aborted(active)
        for number, branch in enumerate(self._branches):
            way = branch[aborted & self._labels[number], frozenset()]
            triggered = _triggered(way, number, active)
            if triggered is not None:
                found.append(triggered)
                self._forget(active, number)
        return found

    def _read(self, active: Starts, names: frozenset[str], now: float) -> None:
        """Let every way that is still possible read an event."""
        apart: dict[int, Starts] = {}
        for state, start in active.items():
            if state >= 0:
                way = self._way_of[state]
                apart.setdefault(way.offset, {})[state - way.offset] = start
        for number, branch in enumerate(self._branches):
            for way in self._relevant(active, number, branch):
                poll()
                atoms = frozenset(atom for port, atom in way.read if port in names)
                own = apart.get(way.offset)
                if way.stepper is None or not atoms or own is None:
                    continue
                known = (id(way.stepper), frozenset(own.items()), atoms, now)
                after = self._steps.get(known)
                if after is None:
                    after = dict(own)
                    way.stepper.take(after, atoms, now=now)
                    if len(self._steps) < REMEMBERED_STEPS:
                        self._steps[known] = after
                if after != own:
                    for state in own:
                        del active[way.offset + state]
                    active.update((way.offset + state, start) for state, start in after.items())

    def is_aborted(self, active: Starts, label: str) -> bool:
        return self._marks.get(label) in active

    def switch(self, active: Starts, kind: Kind, label: str) -> None:
        if self.is_aborted(active, label) is (kind == "abort"):
            return
        if kind == "abort":
            active[self._marks[label]] = NOW
        else:
            del active[self._marks[label]]
        aborted = self._aborted(active)
        for number, branch in enumerate(self._branches):
            if label not in self._labels[number]:
                continue
            for way in branch.values():
                if label in way.out or label in way.fresh:
                    continue
                source = branch.get((way.out, way.fresh | {label}))
                is_next = not (aborted - way.out - way.fresh) & self._labels[number]
                if kind == "revive" and is_next and source is not None:
                    # Nothing inside of the label has been read up to now.
                    _copy(source, way, active)
                else:
                    # This way is not possible now: an aborted label only comes back fresh.
                    _clear(way, active)

    def _aborted(self, active: Starts) -> frozenset[str]:
        return frozenset(label for label, mark in self._marks.items() if mark in active)

    def _relevant(
        self,
        active: Starts,
        number: int,
        branch: dict[tuple[frozenset[str], frozenset[str]], _Way],
    ) -> Iterator[_Way]:
        """The ways that are still possible: in them, labels aborted now are out or fresh."""
        aborted = self._aborted(active) & self._labels[number]
        return (way for way in branch.values() if aborted <= way.out | way.fresh)

    def _forget(self, active: Starts, number: int) -> None:
        branch = self._branches[number]
        for way in branch.values():
            poll()
            _clear(way, active)
        for way in self._relevant(active, number, branch):
            if way.machine is not None:
                active.update((way.offset + state, NOW) for state in way.machine.initial)

    def _ways(self, correlation: FilterCorrelation, branch: Filter, offset: int) -> Iterator[_Way]:
        changing = [label for label in _labels(branch) if label in self._changing]
        changes = frozenset(changing)
        machines: dict[frozenset[str], Machine | None] = {}
        steppers: dict[frozenset[str], Stepper] = {}
        for out, fresh in label_ways(correlation, changing, FORESEEN_WAYS):
            poll()
            if out not in machines:
                left = _left_of(branch, out, changes)
                machine = None if left is None else _machine(correlation, left)
                machines[out] = machine
                if machine is not None:
                    steppers[out] = Stepper(machine)
            way = _way(out, fresh, offset, machines[out], steppers.get(out))
            offset = _end(way)
            if offset > FORESEEN_STATES:
                raise TooManyWaysError(
                    f"the ways in which {len(changing)} labels of a branch change"
                    f" have more than {FORESEEN_STATES:,} states"
                )
            yield way


def _labels(branch: Filter) -> Iterator[str]:
    return (each.label for each in labels_in((branch,)))


def _left_of(
    x: Filter, out: frozenset[str], changing: frozenset[str], path: LabelPath = ()
) -> Filter | None:
    """The expression without labels in `out`; ports are named with the changing labels around."""
    match x:
        case PortRef(name):
            return PortRef(_named(name, path))
        case Timeout():
            return x
        case Labelled(label, body):
            if label in out:
                return None
            inner = (*path, label) if label in changing else path
            left = _left_of(body, out, changing, inner)
            return None if left is None else Labelled(label, left)
        case Times(body, count):
            left = _left_of(body, out, changing, path)
            return None if left is None else Times(left, count)
        case Both(parts) | Either(parts) | Then(parts):
            kept = [_left_of(part, out, changing, path) for part in parts]
            alive = tuple(part for part in kept if part is not None)
            return type(x)(alive) if len(alive) > 1 else next(iter(alive), None)


def _named(port: str, path: LabelPath) -> str:
    return "/".join([port, *path])


def _machine(correlation: FilterCorrelation, x: Filter) -> Machine:
    """The machine of one branch without changes of labels, and without its firing transition."""
    machine = machine_of_filter(replace(correlation, branches=(x,), initially=(), cases=()))
    kept = tuple(t for t in machine.transitions if not isinstance(t.effect, Fire))
    return replace(machine, transitions=kept)


def _way(
    out: frozenset[str],
    fresh: frozenset[str],
    offset: int,
    machine: Machine | None,
    stepper: Stepper | None,
) -> _Way:
    if machine is None:
        return _Way(out, fresh, offset, None, None, ())
    read = []
    for number, atom in enumerate(machine.atoms):
        if isinstance(atom, PortAtom):
            port, *path = atom.name.split("/")
            if fresh.isdisjoint(path):
                read.append((port, number))
    return _Way(out, fresh, offset, machine, stepper, tuple(read))


def _end(way: _Way) -> int:
    return way.offset + (len(way.machine.names) if way.machine is not None else 0)


def _clear(way: _Way, active: Starts) -> None:
    for state in range(way.offset, _end(way)):
        active.pop(state, None)


def _copy(source: _Way, target: _Way, active: Starts) -> None:
    """Copy active states from one way to another, which has the same machine."""
    _clear(target, active)
    for state in range(source.offset, _end(source)):
        if state in active:
            active[target.offset + state - source.offset] = active[state]


def _triggered(way: _Way, number: int, active: Starts) -> Triggered | None:
    if way.machine is None:
        return None
    (branch,) = way.machine.branches
    if way.offset + branch.root not in active:
        return None
    return Triggered(
        number,
        frozenset(label for label, state in branch.labels if way.offset + state in active),
        frozenset(
            port.split("/")[0] for _, port, state in branch.places if way.offset + state in active
        ),
    )
