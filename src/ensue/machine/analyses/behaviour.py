"""One correlation for analyses: configurations, and the steps between them.

A configuration is the state of a correlation under one key: the active states with their starts,
and the timeouts and timer ports that run, each with the moment from which it counts. Moments are
numbered in their order; `zones` knows how far they lie apart. The steps are those of the engines,
without events: an event is the set of atoms that it satisfies, and of outputs it is only known
whether there are any.

A window needs no arithmetic here: a state whose start has left the window can complete nothing any
more, and is dropped (`without`) before the next event is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ensue.lang.derived.label_logic import change_of, label_value
from ensue.lang.derived.relating import relating_clauses
from ensue.lang.expressions import Expression
from ensue.lang.expressions.evaluation import TimerScope, holds
from ensue.lang.expressions.names import names_in
from ensue.lang.syntax import (
    Change,
    Correlation,
    EventPort,
    FilterCorrelation,
    LabelAnd,
    LabelExpression,
    LabelName,
    LabelOr,
    PushNew,
    PushPort,
    Statement,
    TimerPort,
)
from ensue.machine.analyses.deadline import UndecidableError, poll
from ensue.machine.analyses.filter_steps import (
    FilterSteps,
    ForeseenSteps,
    MachineSteps,
    Triggered,
)
from ensue.machine.analyses.label_ways import TooManyWaysError
from ensue.machine.building.from_ecl import machine_of_ecl
from ensue.machine.building.from_filter import machine_of_filter
from ensue.machine.building.labels import left_label_aborted
from ensue.machine.model import AnyAtom, Atom, Machine, PortAtom, PredicateAtom, State, Timer
from ensue.machine.stepping import NOW, Stepper

FEW_CASES = 20
"""With fewer cases, each is tested at a trigger, without an index by labels."""

ANY_AGE = 10**18
"""The window of machines in analyses, which no start leaves: expired starts are dropped before."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The state of a correlation under one key. A start is a moment, or NOW for the present."""

    started: bool = False
    active: frozenset[tuple[State, float]] = frozenset()
    timeouts: frozenset[tuple[State, int]] = frozenset()
    timers: tuple[int, ...] = ()
    """For each timer port, the moment from which its period counts."""

    def moments(self) -> set[int]:
        starts = {int(start) for _, start in self.active if start != NOW}
        return starts.union(self.timers, (moment for _, moment in self.timeouts))

    def renamed(self, names: Mapping[int, int]) -> Configuration:
        """This configuration with other names for its moments."""
        if not names:
            return self
        return Configuration(
            self.started,
            frozenset((s, names[int(at)] if at != NOW else NOW) for s, at in self.active),
            frozenset((state, names[at]) for state, at in self.timeouts),
            tuple(names[at] for at in self.timers),
        )

    def without(self, moments: frozenset[int]) -> Configuration:
        """This configuration without matches that start at moments outside the window."""
        if not moments:
            return self
        kept = frozenset((state, at) for state, at in self.active if at not in moments)
        return replace(self, active=kept)


@dataclass(frozen=True, slots=True)
class Countdown:
    """A timer port or a timeout that is due `after` microseconds from the moment `since`.

    `what` is `port` and its place among the timer ports, or `timeout` and its state.
    """

    what: tuple[str, int]
    since: int
    after: int


@dataclass(frozen=True, slots=True)
class Successor:
    """The configuration after a moment; whether it puts out; the branches and cases that ran."""

    config: Configuration
    puts_out: bool = False
    fired: tuple[Triggered, ...] = ()
    cases: frozenset[int] = frozenset()


class Behaviour:
    """The steps of one correlation, which does not read the ports in `without`.

    Raises `UndecidableError` for a correlation whose steps cannot be followed exactly.
    """

    def __init__(self, correlation: Correlation, without: frozenset[str] = frozenset()) -> None:
        if relating := relating_clauses(correlation):
            words = " and ".join(f"`{each}`" for each in relating)
            raise UndecidableError(
                f"`{correlation.name}` has {words}: what depends on values or numbers of several "
                "events is not followed"
            )
        self.correlation = correlation
        read = [port for port in correlation.ports if port.name not in without]
        self.event_ports = [each for each in read if isinstance(each, EventPort)]
        self.window = correlation.clauses.within.microseconds if correlation.clauses.within else 0
        self.timers = [each for each in read if isinstance(each, TimerPort)]
        self.filter: FilterSteps | None = None
        self.ecl: Stepper | None = None
        self.machine: Machine | None = None
        """None for `ForeseenSteps`, which have many machines."""
        if isinstance(correlation, FilterCorrelation):
            self.filter = _filter_steps(correlation)
            if isinstance(self.filter, MachineSteps):
                self.machine = self.filter.machine
        else:
            self.machine = machine_of_ecl(correlation)
            self.ecl = Stepper(self.machine)
        self._port_atoms: dict[str, int] = {}
        self._other_atoms: list[tuple[int, PredicateAtom | AnyAtom]] = []
        for number, atom in enumerate(self.kinds):
            if isinstance(atom, PortAtom):
                self._port_atoms[atom.name] = number
            else:
                self._other_atoms.append((number, atom))
        at_a_timer = {each: holds(each, TimerScope(0)) for each in self.predicates}
        if self.timers and any(("time",) in names_in(each) for each in self.predicates):
            raise UndecidableError(f"`{correlation.name}` asks its timers for their time")
        self._timer_atoms = [self.atoms(frozenset({each.name}), at_a_timer) for each in self.timers]
        transitions = self.machine.transitions if self.machine is not None else ()
        self._after = {
            t.input.state: t.input.after for t in transitions if isinstance(t.input, Timer)
        }
        self._known: dict[tuple[Configuration, frozenset[int], int], Successor] = {}
        cases = correlation.cases if isinstance(correlation, FilterCorrelation) else ()
        self._cases_waiting = [_one_is_active(case.condition) for case in cases]
        self._cases_asking: dict[str, list[int]] = {}
        self._cases_asking_nothing: list[int] = []
        for number, labels in enumerate(self._cases_waiting):
            if labels is None:
                self._cases_asking_nothing.append(number)
            for label in labels or ():
                self._cases_asking.setdefault(label, []).append(number)
        # In ECL, a state that enables nothing (success at the top) makes no difference.
        self.enabling: frozenset[State] | None = None
        if self.ecl is not None:
            sets = (each for t in transitions for each in t.enabling)
            self.enabling = frozenset[State]().union(*sets)

    def cases_for(self, active: frozenset[str]) -> Iterable[int]:
        """The numbers of the cases that may run at a trigger with these active labels."""
        if len(self._cases_waiting) < FEW_CASES:
            return range(len(self._cases_waiting))
        found = set(self._cases_asking_nothing)
        for label in active:
            found.update(self._cases_asking.get(label, ()))
        return sorted(found)

    @property
    def size(self) -> int:
        """The work of one step, in transitions."""
        if self.filter is not None:
            return self.filter.size
        return len(self._machine_of_ecl.transitions) + 1

    @property
    def kinds(self) -> tuple[Atom, ...]:
        """The atoms of the correlation: an event is a set of them."""
        return self.filter.atoms if self.filter is not None else self._machine_of_ecl.atoms

    @property
    def _machine_of_ecl(self) -> Machine:
        assert self.machine is not None, "every ECL expression has a machine"
        return self.machine

    def atoms(self, ports: frozenset[str], truth: Mapping[Expression, bool]) -> frozenset[int]:
        """The atoms of an event that matches these ports, by the truth of each predicate."""
        satisfied = {self._port_atoms[name] for name in ports if name in self._port_atoms}
        for number, atom in self._other_atoms:
            if isinstance(atom, AnyAtom) or truth[atom.predicate]:
                satisfied.add(number)
        return frozenset(satisfied)

    @property
    def predicates(self) -> list[Expression]:
        """The predicates in the expression itself, without those after `where`."""
        return [a.predicate for a in self.kinds if isinstance(a, PredicateAtom)]

    @property
    def predicates_and_wheres(self) -> list[Expression]:
        wheres = [port.where for port in self.event_ports if port.where is not None]
        return [*self.predicates, *wheres]

    @property
    def has_clocks(self) -> bool:
        return bool(self.timers or self._after)

    def read(self, config: Configuration, atoms: frozenset[int], now: int) -> Successor:
        """Read an event; the first one starts the correlation."""
        poll()
        given = (config, atoms, now)
        known = self._known.get(given)
        if known is None:
            step = _Step(self, config, now)
            if not config.started:
                step.start()
            step.read(atoms)
            known = self._known[given] = step.outcome()
        return known

    def forget(self) -> None:
        """Drop the cache of steps, for a copy in which something was changed."""
        self._known = {}

    def clocks(self, config: Configuration) -> list[Countdown]:
        """The timers and timeouts that run in a configuration."""
        ports = [
            Countdown(("port", place), since, self.timers[place].period.microseconds)
            for place, since in enumerate(config.timers)
        ]
        return ports + [
            Countdown(("timeout", state), since, self._after[state])
            for state, since in sorted(config.timeouts)
        ]

    def fire(self, config: Configuration, due: Iterable[Countdown], now: int) -> Successor:
        """Fire all timers that are due at one time: timer ports in their order, then timeouts."""
        step = _Step(self, config, now)
        timeouts = {clock.what[1] for clock in due if clock.what[0] == "timeout"}
        for clock in due:
            kind, place = clock.what
            # A timer port that fired before may have put a deadline off.
            if kind == "port" and step.timers and step.timers[place] == clock.since:
                step.timers[place] = now
                step.read(self._timer_atoms[place])
        step.tick(frozenset(s for s in timeouts if step.timeouts.get(s, now) != now))
        return step.outcome()


class _Step:
    """One step of a correlation while it is taken."""

    def __init__(self, behaviour: Behaviour, config: Configuration, now: int) -> None:
        self._of = behaviour
        self._now = now
        self._present = float(now) if behaviour.window else NOW
        self._started = config.started
        self._active = dict(config.active)
        self.timeouts = dict(config.timeouts)
        self.timers = list(config.timers)
        self._puts_out = False
        self._changed = False
        self._fired: list[Triggered] = []
        self._cases: set[int] = set()

    def start(self) -> None:
        self._started = True
        self.timers = [self._now] * len(self._of.timers)
        if self._of.ecl is not None:
            self._active, first = self._of.ecl.begin()
            self.timeouts = {timer.state: self._now for timer in first}
        elif self._of.filter is not None:
            self._active = self._of.filter.begin()
        if isinstance(self._of.correlation, FilterCorrelation):
            self._run(self._of.correlation.initially, frozenset())

    def read(self, atoms: frozenset[int]) -> None:
        if not isinstance(self._of.correlation, FilterCorrelation):
            self._take_ecl(atoms, frozenset())
            return
        while fired := self._filter.take(self._active, atoms, self._present):
            self._triggered()
            self._changed = False
            for each in fired:
                self._transform(self._of.correlation, each)
            if not self._changed:
                break
            atoms = frozenset()

    def tick(self, due: frozenset[State]) -> None:
        if due:
            self._take_ecl(frozenset(), due)

    def outcome(self) -> Successor:
        active, timeouts, timers = self._active, self.timeouts, self.timers
        if self._of.enabling is not None:
            active = {state: at for state, at in active.items() if state in self._of.enabling}
            if not active:
                timeouts, timers = {}, []
        config = Configuration(
            self._started,
            frozenset(active.items()),
            frozenset(timeouts.items()),
            tuple(timers),
        )
        return Successor(config, self._puts_out, tuple(self._fired), frozenset(self._cases))

    def _take_ecl(self, atoms: frozenset[int], due: frozenset[State]) -> None:
        assert self._of.ecl is not None
        taken = self._of.ecl.take(self._active, atoms, due)
        self.timeouts = {s: at for s, at in self.timeouts.items() if s in self._active}
        for timer in taken.started:
            if timer.state in self._active:
                self.timeouts[timer.state] = self._now
        if taken.effects:
            self._puts_out = True
            self._triggered()

    @property
    def _filter(self) -> FilterSteps:
        assert self._of.filter is not None, "only filters have labels"
        return self._of.filter

    def _triggered(self) -> None:
        for place, port in enumerate(self._of.timers):
            if port.kind == "deadline" and self.timers:
                self.timers[place] = self._now

    def _transform(self, correlation: FilterCorrelation, fired: Triggered) -> None:
        poll()
        self._fired.append(fired)
        for number in self._of.cases_for(fired.labels):
            case = correlation.cases[number]
            if label_value(case.condition, fired.labels, self._is_aborted):
                self._cases.add(number)
                self._run(case.statements, fired.ports)

    def _run(self, statements: Iterable[Statement], bound: frozenset[str]) -> None:
        for statement in statements:
            match statement:
                case PushNew():
                    self._puts_out = True
                case PushPort(port):
                    timers = {each.name for each in self._of.timers}
                    self._puts_out |= port in bound and port not in timers
                case Change(kind, labels):
                    self._changed = True
                    for label in labels:
                        self._switch(change_of(kind, self._is_aborted(label.name)), label.name)

    def _is_aborted(self, label: str) -> bool:
        return self._filter.is_aborted(self._active, label)

    def _switch(self, kind: Literal["abort", "revive"], label: str) -> None:
        self._filter.switch(self._active, kind, label)


def _one_is_active(x: LabelExpression) -> frozenset[str] | None:
    """Labels, at least one of which is active whenever a case runs, whichever labels are aborted.

    None if a case may run without an active label. An aborted label is left out of `&`, so that one
    of its parts alone may decide.
    """
    match x:
        case LabelName(name):
            return frozenset({name})
        case LabelAnd(parts) | LabelOr(parts):
            asked = [_one_is_active(part) for part in parts]
            known = [each for each in asked if each is not None]
            return frozenset[str]().union(*known) if len(known) == len(asked) else None
        case _:
            return None


def _filter_steps(correlation: FilterCorrelation) -> FilterSteps:
    # Which event is bound to a port changes the content of outputs, never whether there is one.
    plain = replace(correlation, clauses=replace(correlation.clauses, bind=None))
    if left_label_aborted(plain) is not None:
        try:
            return ForeseenSteps(plain)
        except TooManyWaysError as error:
            raise UndecidableError(f"`{correlation.name}` changes too much: {error}") from None
    machine = machine_of_filter(plain)
    return MachineSteps(machine if machine.window is None else replace(machine, window=ANY_AGE))
