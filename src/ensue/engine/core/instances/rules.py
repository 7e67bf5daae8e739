"""A rule that runs event by event: its machine, and its instances by key.

In come events that the rule reads, each with its key and the mask of its atoms; out come outputs.
A key that stands as at its start is dropped, so that memory grows with the number of keys in the
middle of a match, and not with the number of keys that have ever come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from ensue.engine.core.instances.ecl import EclFacts, EclRunner
from ensue.engine.core.instances.filter_facts import FilterFacts
from ensue.engine.core.instances.filters import TabledFilter, WindowedFilter
from ensue.engine.core.instances.keys import FastKey, FirstMove, whole_key
from ensue.engine.core.instances.rows import RowMove, RowTable, SharedTables
from ensue.engine.core.relating.branched import chain_facts
from ensue.engine.core.relating.linked import ChainFacts, ChainFilter
from ensue.engine.counts import Counts
from ensue.engine.instance import Instance
from ensue.engine.outputs import Outputs
from ensue.engine.ports import Ports, Reading
from ensue.engine.reference.filters import FilterInstance
from ensue.engine.sizes import sizes
from ensue.engine.timing.alarms import Sweeps, longest_wait
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.derived.relating import has_timeout
from ensue.lang.syntax import Correlation, FilterCorrelation, TimerPort
from ensue.machine.model import Machine, PortAtom, Timer
from ensue.machine.plan import Form, plan

Runner = TabledFilter | WindowedFilter | EclRunner | ChainFilter | FilterInstance
Start = Callable[[Sequence[TimerPort], Outputs | FastKey, int], Runner]
"""Starts an instance, given its timer ports, its outputs or its key, and the time."""

SavedForm = tuple[Form, Machine | None]
"""The form and the machine that a rule has had before, which its instances go on with."""


class HoldsInstances(Protocol):
    """A group of rules that run in cells, as one of its rules sees it."""

    @property
    def keys(self) -> Collection[FastKey]: ...

    def instances_of(self, rule: Rule, /) -> Mapping[FastKey, Runner]: ...


class Rule:
    """A rule that runs event by event, with its instances by key.

    `order` is its place in the library, by which rules fire that are due together.

    Where a rule runs in cells, its `group` holds its keys.
    """

    def __init__(
        self,
        correlation: Correlation,
        types: TypeSystem,
        shared: SharedTables,
        numbers: Iterator[int],
        saved: SavedForm | None = None,
    ) -> None:
        self.order = 0
        self.is_fed_from = False
        self.is_fed = False
        self.correlation = correlation
        self.ports = Ports(correlation, types)
        self.instances: dict[FastKey, Runner] = {}
        self.form: Form
        self.machine: Machine | None
        self.rows: RowTable | None = None
        self.facts: FilterFacts | None = None
        self.chains: ChainFacts | None = None
        self.group: HoldsInstances | None = None
        self._types = types
        self._numbers = numbers
        self._is_keyed = bool(correlation.clauses.by)
        self._sweeps = Sweeps(sizes().keys_before_a_sweep, longest_wait([correlation]))
        self.starter = self._starter(shared, saved)
        self.has_clock = (
            bool(self.ports.timers)
            or has_timeout(correlation)
            or (
                self.machine is not None
                and any(isinstance(each.input, Timer) for each in self.machine.transitions)
            )
        )
        initially = isinstance(correlation, FilterCorrelation) and correlation.initially
        # A key that has run statements, or counts time from its start, cannot be dropped.
        counts_from_start = bool(self.ports.timers) or (
            self.rows is not None and bool(self.rows.first_timers)
        )
        self.forgets_idle_keys = not (initially or counts_from_start)
        # An instance without due times can be stepped without telling the stream.
        self.is_direct = not self.has_clock and not self.looks_back

    def _starter(self, shared: SharedTables, saved: SavedForm | None) -> Start:
        correlation = self.correlation
        if saved is None:
            planned = plan(correlation, shared.limits)
            self.form = planned.form
            self.machine = None if planned.form == "memory" else planned.needed_machine
        else:
            self.form, self.machine = saved
        if self.machine is None:
            assert isinstance(correlation, FilterCorrelation), "only filters run from memory"
            self.chains = chain_facts(correlation, self._types)
            if self.chains is not None:
                return self.chains.instance
            return partial(FilterInstance, correlation)
        if isinstance(correlation, FilterCorrelation):
            facts = self.facts = FilterFacts(correlation, self.machine, self._types)
            if self.form == "linear":
                return partial(WindowedFilter, facts)
            self.rows = shared.of(self.machine, facts.output_conditions)
            return partial(TabledFilter, facts, self.rows)
        self.rows = shared.of(self.machine)
        return partial(EclRunner, EclFacts(correlation, self.machine, self._types), self.rows)

    @property
    def looks_back(self) -> bool:
        """Whether it runs by the definitions, from all the events that it remembers."""
        return self.form == "memory" and self.chains is None

    @property
    def atoms(self) -> Sequence[object]:
        """The atoms that the bits of a mask stand for."""
        if self.machine is not None:
            return self.machine.atoms
        return [] if self.chains is None else [PortAtom(name) for name in self.chains.ports]

    @property
    def author(self) -> Rule:
        """The rule whose outputs these are."""
        return self

    @property
    def is_internal(self) -> bool:
        """Whether what it puts out is only for the rules that name it."""
        return self.correlation.role == "internal"

    @property
    def name(self) -> str:
        return self.correlation.name

    @property
    def first_moves(self) -> Mapping[int, RowMove | FirstMove]:
        """The known moves of a key that has not started, by the masks of events."""
        if not self.forgets_idle_keys:
            return {}
        if self.rows is not None:
            return self.rows.first
        facts = self.chains or self.facts
        return {} if facts is None else facts.first_moves

    def _first_move(self, mask: int) -> RowMove | FirstMove | None:
        if self.rows is not None:
            return self.rows.move(self.rows.first, mask)
        facts = self.chains or self.facts
        return None if facts is None else facts.first_move(mask)

    def take_over(self, old: Rule) -> None:
        """Go on with the instances of a rule that means the same and has the same machine."""
        self.instances = old.instances
        self.rows, self.starter = old.rows, old.starter
        self.facts, self.chains = old.facts, old.chains

    @property
    def saved_form(self) -> SavedForm:
        return self.form, self.machine

    def held(self) -> Mapping[FastKey, Runner]:
        """The instances of all keys, wherever they are held."""
        return self.instances if self.group is None else self.group.instances_of(self)

    def begin(self, key: FastKey, time: int) -> Runner:
        self.sweep_if_due(time)
        outputs: Outputs | FastKey = key
        if self.looks_back:
            outputs = Outputs(self.name, whole_key(key), self._is_keyed, self._types)
        instance = self.starter(self.ports.timers, outputs, time)
        self.instances[key] = instance
        return instance

    def read(
        self, key: FastKey | None, mask: int, ports: frozenset[str], event: Event, counts: Counts
    ) -> tuple[Instance | None, list[Event]]:
        """Read an event under a key; returns the instance that has read it, and the outputs."""
        if key is None:
            counts.without_key[self.name] += 1
            return None, []
        made: list[Event] = []
        instance = self.instances.get(key)
        if instance is None:
            if self.forgets_idle_keys:
                move = self.first_moves.get(mask) or self._first_move(mask)
                if move is not None and move.is_noop:
                    return None, []
            instance = self.begin(key, event.time)
            if isinstance(self.correlation, FilterCorrelation) and self.correlation.initially:
                made += instance.start(Reading(event.time, ports, event))
        number = instance.last_read = next(self._numbers)
        if isinstance(instance, FilterInstance):
            made += instance.read(Reading(event.time, ports, event))
        else:
            made += instance.step(mask, event.time, (number, event))
        return instance, made

    def sweep_if_due(self, now: int) -> None:
        sweeps = self._sweeps
        if len(self.instances) >= sweeps.most_keys or now >= sweeps.due:
            self.sweep(now)

    def sweep(self, now: int) -> None:
        """Drop the keys that stand as before they started."""
        before = len(self.instances)
        if self.forgets_idle_keys:
            gone = [
                key
                for key, instance in self.instances.items()
                if instance.is_idle(now)
                and (
                    (made := instance.made_outputs) is None or made.time is None or made.time < now
                )
            ]
            for key in gone:
                # An alarm that is still set is out of date.
                self.instances.pop(key).armed_for = None
        self._sweeps.done(before, len(self.instances), now)
