"""Filters on their machines: on a table, or stepped directly where there is a window.

Both follow `ensue.engine.reference.filters`: the event is read; the transformers of the branches
that fired run; then branches that an abort has completed fire, and so on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from ensue.engine.core.instances.filter_facts import FilterFacts
from ensue.engine.core.instances.firing import (
    NumberedEvent,
    bound_events,
    in_order,
    reading_of,
    trigger_of,
)
from ensue.engine.core.instances.keys import FastKey, KeyInstance
from ensue.engine.core.instances.rows import Row, RowTable
from ensue.engine.instance import ENDLESS
from ensue.engine.outputs import Outputs, Transformer, Trigger
from ensue.engine.ports import Reading, mask_of
from ensue.events.event import Event
from ensue.lang.syntax import TimerPort
from ensue.machine.model import Bind, State
from ensue.machine.stepping import NOW, Fired, Starts


class FilterRunner(KeyInstance):
    """What table and window have in common: places, triggers, and the transformer's rounds.

    `places` has the event that is bound in each place.
    """

    __slots__ = ("_changed", "facts", "places")

    def __init__(
        self,
        facts: FilterFacts,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        KeyInstance.__init__(self, timers, outputs, started)
        self.facts: FilterFacts = facts
        self.places: list[NumberedEvent | None] = [None] * facts.place_count
        self._changed = False

    @abstractmethod
    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        """Take an event or a firing, by the mask of its atoms."""

    @abstractmethod
    def is_active(self, state: State) -> bool: ...

    @abstractmethod
    def switch(self, kind: str, label: str) -> None: ...

    @abstractmethod
    def _settled(self, time: int, numbered: NumberedEvent) -> Sequence[Fired]:
        """The branches that fire after labels have changed."""

    def start(self, first: Reading) -> list[Event]:
        return self._transformer().begin(Trigger(first.time, first.event_id))

    def read(self, reading: Reading) -> list[Event]:
        latest = max((numbered[0] for numbered in self.places if numbered), default=0)
        numbered = (latest + 1, reading.time if reading.event is None else reading.event)
        return self.step(mask_of(self.facts.machine, reading), reading.time, numbered)

    def is_aborted(self, label: str) -> bool:
        return label in self.facts.aborted and self.is_active(self.facts.aborted[label])

    def abort(self, label: str) -> None:
        self._changed = True
        self.switch("abort", label)

    def revive(self, label: str) -> None:
        self._changed = True
        self.switch("revive", label)

    def _transformer(self) -> Transformer:
        return Transformer(self.facts.correlation, self.outputs, self)

    def _trigger(self, fired: Fired, time: int, event_id: str | None) -> Trigger:
        ports = self.facts.ports
        pairs = ((place, ports[place]) for place in fired.places)
        found = in_order(bound_events(pairs, self.places, self.facts.binds_first))
        bound = {port: reading_of(numbered) for port, numbered in found.items()}
        return Trigger(time, event_id, fired.labels, bound)

    def _fire(self, fired: Sequence[Fired], time: int, numbered: NumberedEvent) -> list[Event]:
        """The outputs of branches that have fired, and of those that fire as labels change."""
        facts = self.facts
        made: list[Event] = []
        if not facts.changes_labels:
            self.triggered(time)
            trigger = trigger_of(numbered)
            for each in fired:
                made += facts.firing(each)(self.outputs, self.places, time, trigger)
            return made
        event_id = numbered[1].id if isinstance(numbered[1], Event) else None
        while fired:
            self.triggered(time)
            triggers = [self._trigger(each, time, event_id) for each in fired]
            self._changed = False
            transformer = self._transformer()
            for trigger_ in triggers:
                made += transformer.transform(trigger_)
            fired = self._settled(time, numbered) if self._changed else ()
        return made


class TabledFilter(FilterRunner):
    """A filter without a window, on its table."""

    __slots__ = ("row", "rows")

    row: Row

    def __init__(
        self,
        facts: FilterFacts,
        rows: RowTable,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        FilterRunner.__init__(self, facts, timers, outputs, started)
        self.rows = rows
        self.row = rows.first

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        row = self.row
        move = row.get(mask) or self.rows.move(row, mask)
        if move.bind is not None:
            move.bind(self, numbered)
        self.row = move.to
        return self._fire(move.fired, time, numbered) if move.fired else []

    def _settled(self, time: int, numbered: NumberedEvent) -> Sequence[Fired]:  # noqa: ARG002
        move = self.rows.move(self.row, 0)
        self.row = move.to
        return move.fired

    def idle_until(self, port: TimerPort) -> int | None:
        mask = self.facts.timer_mask(port)
        return ENDLESS if mask is not None and self.rows.move(self.row, mask).is_noop else None

    def is_active(self, state: State) -> bool:
        return bool(self.row.bits >> state & 1)

    def switch(self, kind: str, label: str) -> None:
        self.row = self.rows.switch(self.row, kind, label)

    def is_idle(self, now: int) -> bool:  # noqa: ARG002
        """Whether it stands as at its start."""
        return self.row.bits == self.rows.first.bits


class WindowedFilter(FilterRunner):
    """A filter with a window: its states carry the start of what they stand for."""

    __slots__ = ("active",)

    def __init__(
        self,
        facts: FilterFacts,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        FilterRunner.__init__(self, facts, timers, outputs, started)
        self.active: Starts = facts.stepper.begin()[0]

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        facts = self.facts
        taken = facts.stepper.take(self.active, facts.atoms_of(mask), now=time)
        fired = self._bound(taken.effects, numbered) if taken.effects else ()
        return self._fire(fired, time, numbered) if fired else []

    def _bound(self, effects: Iterable[object], numbered: NumberedEvent) -> Sequence[Fired]:
        """Bind an event in its places; returns the branches that fire."""
        fired = []
        for effect in effects:
            if isinstance(effect, Bind):
                self.places[effect.place] = numbered
            elif isinstance(effect, Fired):
                fired.append(effect)
        return fired

    def _settled(self, time: int, numbered: NumberedEvent) -> Sequence[Fired]:
        return self._bound(self.facts.stepper.take(self.active, now=time).effects, numbered)

    def idle_until(self, port: TimerPort) -> int | None:
        mask = self.facts.timer_mask(port)
        if mask is None:
            return None
        now, before = self._due[port.name], dict(self.active)
        after = dict(before)
        stepper = self.facts.stepper
        if stepper.take(after, self.facts.atoms_of(mask), now=now).effects or after != before:
            return None
        # What leaves the window may let the next firing do something.
        window = self.facts.machine.window or 0
        starts = [int(start) for start in before.values() if now - window <= start < NOW]
        return min(starts, default=ENDLESS) + window

    def is_active(self, state: State) -> bool:
        return state in self.active

    def switch(self, kind: str, label: str) -> None:
        active = self.active
        switch = self.facts.switches[kind, label]
        if switch.requires in active:
            for state in switch.clear:
                active.pop(state, None)
            active.update(dict.fromkeys(switch.target, NOW))
            self.active = active

    def is_idle(self, now: int) -> bool:
        """Whether all that it holds beyond its start has left the window for good.

        Starts never grow by themselves: what lies before the window can complete nothing, make no
        label active and bind no place, now or later.
        """
        machine = self.facts.machine
        oldest = now - (machine.window or 0)
        alive = {state for state, start in self.active.items() if start >= oldest}
        return alive == machine.initial
