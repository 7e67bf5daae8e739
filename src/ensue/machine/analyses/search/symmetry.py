"""Interchangeable ports, so that forty ports do not make 2^40 situations.

In `a + b + c` it does not matter *which* two of three ports have had an event, only how many. In
come behaviours and the symbols that they read; out come classes of interchangeable ports: to
exchange two ports of a class maps every machine, and the set of symbols, onto itself. Situations
that differ only by such exchanges have the same future, up to the names of ports. So a search goes
into one of them (`key`), and reads one of the symbols that are alike there (`distinct`).

An exchange is guessed from the transitions that read the two ports, and then proven for the whole
machine. Without a proof ports count as different.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ensue.lang.syntax import FilterCorrelation, PushPort
from ensue.machine.analyses.behaviour import Behaviour, Configuration
from ensue.machine.analyses.deadline import poll
from ensue.machine.analyses.events.alphabet import Symbol
from ensue.machine.model import Bind, Machine, PortAtom, State, Timer, Transition

GUESSING_WORK = 3_000_000
"""The budget, in states of transitions and symbols; past that ports count as different."""

LARGE_MACHINES = 20_000
"""In machines with more transitions, interchangeable ports are not looked for."""

Exchange = Mapping[State, State]
"""The states that change places; all others stay."""


@dataclass(frozen=True)
class PortStates:
    """A port of a class, with its states; equal places in `states` correspond within the class."""

    name: str
    states: tuple[tuple[int, State], ...]


class Symmetry:
    """Classes of at least two ports each."""

    def __init__(
        self, classes: Sequence[Sequence[PortStates]], port_atoms: Sequence[frozenset[int]] = ()
    ) -> None:
        self._classes = classes
        self._port_atoms = port_atoms
        self._own = {each for ports in classes for port in ports for each in port.states}

    def key(self, configs: tuple[Configuration, ...]) -> Hashable:
        """Equal for situations that differ only by exchanges of ports of a class."""
        if not self._classes:
            return configs
        starts = [dict(config.active) for config in configs]
        alike = tuple(
            tuple(sorted(Counter(_places(port, starts) for port in ports).items()))
            for ports in self._classes
        )
        rest = tuple(
            (
                config.started,
                frozenset(each for each in config.active if (n, each[0]) not in self._own),
                config.timeouts,
                config.timers,
            )
            for n, config in enumerate(configs)
        )
        return rest, alike

    def distinct(
        self, configs: tuple[Configuration, ...], symbols: Sequence[Symbol]
    ) -> Iterable[Symbol]:
        """One symbol of all that lead to situations with equal keys."""
        if not self._classes:
            return symbols
        starts = [dict(config.active) for config in configs]
        places = {
            port.name: (number, _places(port, starts))
            for number, ports in enumerate(self._classes)
            for port in ports
        }
        kinds: dict[Hashable, Symbol] = {}
        for symbol in symbols:
            kinds.setdefault(self._kind(symbol, places), symbol)
        return kinds.values()

    def _kind(self, symbol: Symbol, places: Mapping[str, Hashable]) -> Hashable:
        names = frozenset().union(*symbol.ports)
        exchanged = Counter(
            (places[name], tuple(name in ports for ports in symbol.ports))
            for name in names
            if name in places
        )
        plain = tuple(frozenset(n for n in ports if n not in places) for ports in symbol.ports)
        return plain, _others(symbol, self._port_atoms), frozenset(exchanged.items())


def _places(port: PortStates, starts: Sequence[Mapping[State, float]]) -> tuple[float, ...]:
    """The start of each state of a port; -1 for a state that is not active."""
    return tuple(starts[number].get(state, -1.0) for number, state in port.states)


def _others(symbol: Symbol, port_atoms: Sequence[frozenset[int]]) -> Hashable:
    """The atoms of an event without those of ports."""
    return tuple(a - ports for a, ports in zip(symbol.atoms, port_atoms, strict=True))


def symmetry_of(behaviours: Sequence[Behaviour], symbols: Sequence[Symbol]) -> Symmetry:
    return _SymmetrySearch(behaviours, symbols).symmetry()


class _SymmetrySearch:
    """The search for classes of ports, within a budget."""

    def __init__(self, behaviours: Sequence[Behaviour], symbols: Sequence[Symbol]) -> None:
        self._behaviours = behaviours
        self._machines: list[_Exchanges] = []
        self._port_atoms = [
            frozenset(n for n, atom in enumerate(each.kinds) if isinstance(atom, PortAtom))
            for each in behaviours
        ]
        self._symbols = {(each.ports, _others(each, self._port_atoms)) for each in symbols}
        self._symbols_of: dict[str, list[tuple[tuple[frozenset[str], ...], Hashable]]] = {}
        for ports, others in self._symbols:
            for name in frozenset().union(*ports):
                self._symbols_of.setdefault(name, []).append((ports, others))
        self._work_left = GUESSING_WORK

    def symmetry(self) -> Symmetry:
        machines = [each.machine for each in self._behaviours if each.machine is not None]
        is_large = sum(len(each.transitions) for each in machines) > LARGE_MACHINES
        if len(machines) < len(self._behaviours) or is_large:
            return Symmetry([])
        self._machines = [_Exchanges(each) for each in machines]
        one_try = sum(each.size for each in self._machines) + len(self._symbols)
        pushed = {name for each in self._behaviours for name in _pushed(each)}
        names = sorted(
            {name for ports, _ in self._symbols for each in ports for name in each} - pushed
        )
        classes: list[dict[str, tuple[tuple[int, State], ...]]] = []
        for name in names:
            for known in classes:
                poll()
                self._work_left -= one_try
                if self._work_left < 0:
                    break
                first = next(iter(known))
                exchanges = self._exchanges(first, name)
                if exchanges is not None:
                    # Every exchange is one with the first port, so that states correspond.
                    moved = [(n, s) for n, each in enumerate(exchanges) for s in each]
                    own = [(n, s) for n, s in moved if s in self._machines[n].states_of(first)]
                    if not known[first]:
                        known[first] = tuple(own)
                    if set(own) == set(known[first]):
                        known[name] = tuple((n, exchanges[n][s]) for n, s in known[first])
                        break
            else:
                classes.append({name: ()})
        return Symmetry(
            [
                [PortStates(name, states) for name, states in known.items()]
                for known in classes
                if len(known) > 1
            ],
            self._port_atoms,
        )

    def _exchanges(self, one: str, other: str) -> list[Exchange] | None:
        """The exchange of states in each machine for two ports; None if a machine has none."""
        swapped = {one: other, other: one}

        def moved(ports: frozenset[str]) -> frozenset[str]:
            return frozenset(swapped.get(name, name) for name in ports)

        # A symbol without either port stays as it is.
        for ports, others in (*self._symbols_of[one], *self._symbols_of[other]):
            if (tuple(map(moved, ports)), others) not in self._symbols:
                return None
        found = [each.exchange(one, other) for each in self._machines]
        exchanges = [each for each in found if each is not None]
        return exchanges if len(exchanges) == len(found) else None


class _Exchanges:
    """The exchanges of states that map one machine onto itself."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._readers: dict[str, list[Transition]] = {}
        for each in machine.transitions:
            if isinstance(each.input, int):
                atom = machine.atoms[each.input]
                if isinstance(atom, PortAtom):
                    self._readers.setdefault(atom.name, []).append(each)
        self._atoms = {
            atom.name: n for n, atom in enumerate(machine.atoms) if isinstance(atom, PortAtom)
        }
        self._runs = [_Run(each) for each in _runs(machine.transitions)]
        self._timed = {t.input.state for t in machine.transitions if isinstance(t.input, Timer)}
        self._states_of = {
            name: {
                state
                for each in readers
                for states in (*each.enabling, each.clear, each.target)
                for state in states
            }
            for name, readers in self._readers.items()
        }
        self.size = sum(
            len(each.clear) + len(each.target) + sum(map(len, each.enabling))
            for each in machine.transitions
        )

    def states_of(self, port: str) -> Container[State]:
        """The states in transitions that read a port."""
        return self._states_of.get(port, ())

    def exchange(self, one: str, other: str) -> Exchange | None:
        found = self._guess(one, other)
        return found if found is not None and self._holds(found, one, other) else None

    def _guess(self, one: str, other: str) -> Exchange | None:
        """The exchange by which the transitions that read the two ports differ."""
        first, second = self._readers.get(one, []), self._readers.get(other, [])
        if len(first) != len(second):
            return None
        found: dict[State, State] = {}
        for a, b in zip(first, second, strict=True):
            if len(a.enabling) != len(b.enabling):
                return None
            sets = [*zip(a.enabling, b.enabling, strict=True), (a.clear, b.clear)]
            for here, there in [*sets, (a.target, b.target)]:
                only_here, only_there = here - there, there - here
                if len(only_here) != len(only_there) or len(only_here) > 1:
                    return None
                for x, y in zip(only_here, only_there, strict=True):
                    if found.setdefault(x, y) != y or found.setdefault(y, x) != x:
                        return None
        return found

    def _holds(self, exchange: Exchange, one: str, other: str) -> bool:
        machine = self._machine

        def is_fixed(states: Iterable[State]) -> bool:
            given = frozenset(states)
            return frozenset(exchange.get(state, state) for state in given) == given

        fixed = [state for branch in machine.branches for _, state in branch.labels]
        fixed += [branch.root for branch in machine.branches]
        atoms: dict[int, int] = {}
        if one in self._atoms and other in self._atoms:
            atoms = {
                self._atoms[one]: self._atoms[other],
                self._atoms[other]: self._atoms[one],
            }
        return (
            self._timed.isdisjoint(exchange)
            and not any(state in exchange for state in fixed)
            and is_fixed(machine.initial)
            and is_fixed(machine.constant)
            and all(
                switch.requires not in exchange
                and is_fixed(switch.clear)
                and is_fixed(switch.target)
                for switch in machine.switches
            )
            and all(run.is_fixed(exchange, atoms) for run in self._runs)
        )


def _pushed(behaviour: Behaviour) -> Iterable[str]:
    """The ports in `push` statements: without an event of the port nothing is put out."""
    correlation = behaviour.correlation
    if isinstance(correlation, FilterCorrelation):
        for case in correlation.cases:
            for statement in case.statements:
                if isinstance(statement, PushPort):
                    yield statement.port


def _runs(transitions: Sequence[Transition]) -> list[list[Transition]]:
    """Transitions in order, in runs of neighbours whose order does not matter."""
    runs: list[list[Transition]] = []
    is_open = False
    touched: set[State] = set()
    cleared: set[State] = set()
    for each in transitions:
        reads = isinstance(each.input, int)
        own = each.target.union(*each.enabling)
        if is_open and reads and cleared.isdisjoint(own) and touched.isdisjoint(each.clear):
            runs[-1].append(each)
        else:
            runs.append([each])
            touched, cleared, is_open = set(), set(), reads
        touched |= own
        cleared |= each.clear
    return runs


class _Run:
    """Transitions whose order does not matter, with an index by their states and atoms."""

    def __init__(self, transitions: list[Transition]) -> None:
        self._transitions = transitions
        self._naming: dict[State, list[int]] = {}
        self._reading: dict[int, list[int]] = {}
        for number, each in enumerate(transitions):
            for state in each.clear.union(each.target, *each.enabling):
                self._naming.setdefault(state, []).append(number)
            if isinstance(each.input, int):
                self._reading.setdefault(each.input, []).append(number)

    def is_fixed(self, exchange: Exchange, atoms: Mapping[int, int]) -> bool:
        """Whether an exchange of states and atoms maps the set of transitions onto itself."""
        poll()
        moved: set[int] = set()
        for state in exchange:
            moved.update(self._naming.get(state, ()))
        for atom in atoms:
            moved.update(self._reading.get(atom, ()))
        own = [self._transitions[number] for number in moved]
        return _shape(own, exchange, atoms) == _shape(own, {}, {})


def _shape(run: list[Transition], exchange: Exchange, atoms: Mapping[int, int]) -> Hashable:
    """The multiset of transitions after an exchange, without bindings."""

    def moved(states: frozenset[State]) -> frozenset[State]:
        there = [state for state in exchange if state in states]
        if all(exchange[state] in states for state in there):
            return states
        return states.difference(there).union(exchange[state] for state in there)

    return frozenset(
        Counter(
            (
                frozenset(Counter(map(moved, each.enabling)).items()),
                atoms.get(each.input, each.input) if isinstance(each.input, int) else each.input,
                moved(each.clear),
                moved(each.target),
                None if isinstance(each.effect, Bind) else each.effect,
            )
            for each in run
        ).items()
    )
