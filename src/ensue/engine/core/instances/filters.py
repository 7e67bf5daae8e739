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
from ensue.engine.core.instances.rows import (
    ATTRIBUTES,
    Row,
    RowMove,
    RowTable,
    all_places,
    binding,
)
from ensue.engine.core.instances.windows import NEVER, HeldStarts, PlacesAndStarts, WindowSteps
from ensue.engine.instance import ENDLESS
from ensue.engine.outputs import Outputs, Transformer, Trigger
from ensue.engine.ports import Reading, mask_of
from ensue.events.event import Event
from ensue.lang.syntax import TimerPort
from ensue.machine.model import Bind, Emit, State
from ensue.machine.stepping import NOW, Fired, Starts, Stepper


class FilterRunner(KeyInstance):
    """What table and window have in common: places, triggers, and the transformer's rounds."""

    __slots__ = ("_changed", "facts", "row")

    row: Row | dict[int, RowMove]

    def __init__(
        self,
        facts: FilterFacts,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        KeyInstance.__init__(self, timers, outputs, started)
        self.facts: FilterFacts = facts
        self._changed = False

    @abstractmethod
    def bound(self) -> Sequence[NumberedEvent | None]:
        """The event that is bound in each place, or None; items behind the places mean nothing."""

    @abstractmethod
    def bind(self, place: int, numbered: NumberedEvent) -> None: ...

    @abstractmethod
    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        """Take an event or a firing, by the mask of its atoms."""

    @abstractmethod
    def is_active(self, state: State) -> bool: ...

    @abstractmethod
    def switch(self, kind: str, label: str) -> None: ...

    def start(self, first: Reading) -> list[Event]:
        return self._transformer().begin(Trigger(first.time, first.event_id))

    def read(self, reading: Reading) -> list[Event]:
        places = self.bound()[: self.facts.place_count]
        latest = max((numbered[0] for numbered in places if numbered), default=0)
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

    def _trigger(
        self, fired: Fired, places: Sequence[NumberedEvent | None], time: int, event_id: str | None
    ) -> Trigger:
        ports = self.facts.ports
        pairs = ((place, ports[place]) for place in fired.places)
        found = in_order(bound_events(pairs, places, self.facts.binds_first))
        bound = {port: reading_of(numbered) for port, numbered in found.items()}
        return Trigger(time, event_id, fired.labels, bound)

    def _transformed(
        self, effects: Iterable[Emit | Bind | Fired], time: int, numbered: NumberedEvent
    ) -> list[Event]:
        """Run the transformer for each branch that has fired."""
        event_id = numbered[1].id if isinstance(numbered[1], Event) else None
        places = self.bound()
        triggers = [
            self._trigger(each, places, time, event_id)
            for each in effects
            if isinstance(each, Fired)
        ]
        self._changed = False
        transformer = self._transformer()
        return [output for trigger in triggers for output in transformer.transform(trigger)]


class TabledFilter(FilterRunner):
    """A filter without a window, on its table."""

    __slots__ = (*ATTRIBUTES, "more", "rows")

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
        self.place0: NumberedEvent | None = None
        self.place1: NumberedEvent | None = None
        self.place2: NumberedEvent | None = None
        self.place3: NumberedEvent | None = None
        others = facts.place_count - len(ATTRIBUTES)
        self.more: list[NumberedEvent | None] | None = [None] * others if others > 0 else None

    def bound(self) -> Sequence[NumberedEvent | None]:
        return all_places(self)

    def bind(self, place: int, numbered: NumberedEvent) -> None:
        binding((place,))(self, numbered)

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        row = self.row
        move = row.get(mask) or self.rows.move(row, mask)
        if move.bind is not None:
            move.bind(self, numbered)
        self.row = move.to
        if not move.effects:
            return []
        facts = self.facts
        emit = facts.emit_of.get(move)
        if emit is not None:
            held = self._outputs_or_key
            outputs = held if held.__class__ is Outputs else self.outputs
            # A rule with timers has no such function, so that this is an event.
            return emit(outputs, self, time, numbered[1].id)  # type: ignore[union-attr]
        if self._timers:
            self.triggered(time)
        if not facts.changes_labels and row.is_kept:
            trigger = trigger_of(numbered)
            return [
                output
                for emit in facts.firings(move)
                for output in emit(self.outputs, self, time, trigger)
            ]
        made: list[Event] = []
        while move.effects:
            self.triggered(time)
            made += self._transformed(move.effects, time, numbered)
            if not self._changed:
                break
            move = self.rows.move(self.row, 0)
            self.row = move.to
        return made

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


NO_MOVES: dict[int, RowMove] = {}
"""The row of a machine with a window: none of its moves is known beforehand."""


class WindowedFilter(FilterRunner):
    """A filter with a window: its states carry the start of what they stand for."""

    __slots__ = ("active", "places", "stepper")

    places: list[NumberedEvent | None]

    def __init__(
        self,
        facts: FilterFacts,
        stepper: Stepper,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        super().__init__(facts, timers, outputs, started)
        self.places = [None] * facts.place_count
        self.stepper = stepper
        self.row = NO_MOVES
        self.active: Starts = stepper.begin()[0]

    def bound(self) -> Sequence[NumberedEvent | None]:
        return self.places

    def bind(self, place: int, numbered: NumberedEvent) -> None:
        self.places[place] = numbered

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        atoms = frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
        effects = self.stepper.take(self.active, atoms, now=time).effects
        if not effects:
            return []
        made: list[Event] = []
        for effect in effects:
            if isinstance(effect, Bind):
                self.places[effect.place] = numbered
        while any(isinstance(effect, Fired) for effect in effects):
            self.triggered(time)
            made += self._transformed(effects, time, numbered)
            if not self._changed:
                break
            effects = self.stepper.take(self.active, now=time).effects
        return made

    def idle_until(self, port: TimerPort) -> int | None:
        mask = self.facts.timer_mask(port)
        if mask is None:
            return None
        now, before = self._due[port.name], dict(self.active)
        after = dict(before)
        atoms = frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
        if self.stepper.take(after, atoms, now=now).effects or after != before:
            return None
        # What leaves the window may let the next firing do something.
        window = self.stepper.machine.window or 0
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
        machine = self.stepper.machine
        oldest = now - (machine.window or 0)
        alive = {state for state, start in self.active.items() if start >= oldest}
        return alive == machine.initial


class GeneratedWindow(WindowedFilter):
    """A filter with a window on a machine in generated Python; `places` holds its starts, too."""

    __slots__ = ("steps",)

    places: PlacesAndStarts

    def __init__(
        self,
        facts: FilterFacts,
        steps: WindowSteps,
        stepper: Stepper,
        timers: Sequence[TimerPort],
        outputs: Outputs | FastKey,
        started: int,
    ) -> None:
        FilterRunner.__init__(self, facts, timers, outputs, started)
        self.stepper = stepper
        self.row = NO_MOVES
        self.steps = steps
        self.places = steps.blank.copy()

    @property
    def starts(self) -> HeldStarts:
        return tuple(self.places[self.steps.place_count :])

    @starts.setter
    def starts(self, starts: HeldStarts) -> None:
        self.places[self.steps.place_count :] = starts

    @property
    def active(self) -> Starts:
        return self.steps.to_starts(self.starts)

    @active.setter
    def active(self, active: Starts) -> None:
        self.starts = self.steps.from_starts(active)

    def step(self, mask: int, time: int, numbered: NumberedEvent) -> list[Event]:
        steps = self.steps
        take = steps.known.get(mask) or steps.take(mask)
        oldest = time - steps.window
        fired = take(self.places, numbered, time, oldest)
        if fired is None:
            return []
        if self._timers:
            self.triggered(time)
        facts = self.facts
        made: list[Event] = []
        if not facts.changes_labels:
            trigger = trigger_of(numbered)
            for each in fired:
                made += facts.firing(steps, each)(self.outputs, self.places, time, trigger)
            return made
        while fired is not None:
            effects = [steps.fired(branch, counting) for branch, counting in fired]
            made += self._transformed(effects, time, numbered)
            if not self._changed:
                break
            fired = steps.take(0)(self.places, numbered, time, oldest)
            if fired is not None:
                self.triggered(time)
        return made

    def is_idle(self, now: int) -> bool:
        oldest = now - self.steps.window
        if self.steps.begins_empty:
            return max(self.starts, default=NEVER) < oldest
        return all(
            start == first or (start >= oldest) == (first >= oldest)
            for start, first in zip(self.starts, self.steps.first, strict=True)
        )
