"""A library over a stream, event by event.

There is one clock for the whole stream. An event first moves the clock, and timers that are due
fire; then the rules that want the event read it, in the order of the library; their outputs are
read after that by the rules that name them, first in, first out. A rule runs by itself
(`core.instances`) or in a cell with many others (`many`); which rules read an event is found by
`dispatch`. Rules can be added, replaced and removed while the stream runs; rules that stay keep
their keys.

The module is long because one state, the rules with their clock, serves reading, timers and changes
of rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING

from ensue.engine.changing import is_unchanged
from ensue.engine.core.instances.keys import FastKey
from ensue.engine.core.instances.rows import SharedTables
from ensue.engine.core.instances.rules import Rule, SavedForm
from ensue.engine.counts import Counts
from ensue.engine.instance import ENDLESS
from ensue.engine.outputs import carries_key_inside
from ensue.engine.ports import KeyNames
from ensue.engine.step.dispatch.plans import (
    MixedReadPlan,
    ReadPlan,
    SplitReading,
    TypeRoutines,
)
from ensue.engine.step.dispatch.routines import (
    LookRoutine,
    PushRoutine,
    StreamParts,
    look_routine,
    push_routine,
)
from ensue.engine.step.many.grouping import AlarmOrder, CellShape, Grouping
from ensue.engine.timing.alarms import Alarms, advance_in_steps
from ensue.engine.timing.ordering import Ordering
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary
from ensue.machine.limits import DEFAULT_MACHINE_LIMITS, MachineLimits
from ensue.machine.prepared import brought_plan

if TYPE_CHECKING:
    # Loaded when a library has enough rules for cells (`_new_group`).
    from ensue.engine.step.many.group import StepGroup


class StepStream:
    """Reads events in the order of their times, in which the caller has put them."""

    def __init__(
        self,
        library: CheckedLibrary,
        counts: Counts,
        limits: MachineLimits = DEFAULT_MACHINE_LIMITS,
    ) -> None:
        self.rules: list[Rule] = []
        self.numbers = count(1)
        self.alarms = Alarms[Rule]()
        self._counts = counts
        self._shared = SharedTables(limits)
        self._types = library.types
        self._routines: dict[str, TypeRoutines] = {}
        self._looks: dict[tuple[str, str | None], LookRoutine | None] = {}
        self._remake_pushes: Callable[[], None] | None = None
        self.groups: dict[KeyNames, StepGroup] = {}
        self._shapes: dict[str, CellShape] = {}
        self.apart = False
        self._alone: AbstractSet[str] = frozenset()
        self._grouping = Grouping()
        self._with_timers: list[StepGroup] = []
        self._orders: Mapping[str, int] = {}
        self.change(library)

    # --- rules that come and go -----------------------------------------------------------------

    def change(self, library: CheckedLibrary, saved: Mapping[str, SavedForm] | None = None) -> None:
        """Run another library from now on. A rule that means the same keeps its instances.

        `saved` holds the forms that rules had in a snapshot, where they are to go on with them.
        """
        known = {rule.name: rule for rule in self.rules}
        fed = {name for readers in library.feeds.values() for name in readers}
        staying: dict[str, Rule] = {}
        rules = []
        for order, correlation in enumerate(library.correlations):
            form = (saved or {}).get(correlation.name)
            brought = brought_plan(library, correlation) if form is None else None
            if brought is not None:
                form = brought.run_as
            old = known.get(correlation.name)
            if old and is_unchanged(old.correlation, correlation, self._types, library.types):
                staying[correlation.name] = old
                form = old.saved_form
            rule = Rule(correlation, library.types, self._shared, self.numbers, form)
            if rule.name in staying:
                rule.take_over(staying[rule.name])
            rule.order = order
            rule.is_fed_from = bool(library.feeds.get(rule.name))
            rule.is_fed = rule.name in fed
            rules.append(rule)
        self.rules = rules
        self._types = library.types
        self._alone = fed | {name for name, readers in library.feeds.items() if readers}
        self._alone |= {
            each.name
            for each in library.correlations
            if each.role == "internal" or carries_key_inside(each, library.types)
        }
        self._form_groups(staying)
        self._make_routines()
        self.set_alarms()

    def _form_groups(self, staying: Mapping[str, Rule]) -> None:
        """Give rules cells where enough of them can have cells.

        `staying` are the rules that go on as they were, by their names.
        """
        together = [] if self.apart else [r for r in self.rules if r.name not in self._alone]
        chosen = self._grouping.in_cells(together, self.groups)
        shapes = {rule.name: s for rules in chosen.values() for rule, s in rules.items()}
        going_on = {name for name in staying if shapes.get(name) == self._shapes.get(name)}
        for rule in self.rules:
            old = staying.get(rule.name)
            if old is not None and old.group is not None and rule.name not in going_on:
                rule.instances = dict(old.group.instances_of(old))
                rule.group = None
        self.groups = {names: self.groups.get(names) or self._new_group(names) for names in chosen}
        for names, rules in chosen.items():
            self.groups[names].take(rules, going_on, self._types)
        self._shapes = shapes
        self._with_timers = [group for group in self.groups.values() if group.has_timers]
        self._set_earliest()
        self._orders = {rule.name: rule.order for rule in self.rules}

    def _new_group(self, key_names: KeyNames) -> StepGroup:
        # Loaded only for a library that has enough rules for cells.
        from ensue.engine.step.many.group import StepGroup

        return StepGroup(key_names, self._grouping.leave, self._grouping.earliest)

    def _make_routines(self) -> None:
        groups = {rule.name: g for g in self.groups.values() for rule in g.rules}
        self._routines = {
            each.name: TypeRoutines(each.name, self._types, self.rules, groups)
            for each in self._types
        }
        self._looks = {}
        if self._remake_pushes is not None:
            self._remake_pushes()

    def begin_again(
        self, library: CheckedLibrary, forms: Mapping[str, SavedForm], read: int, apart: bool
    ) -> None:
        """Start anew with rules in the forms of a snapshot, before their instances are restored."""
        self.apart = apart
        self.numbers = count(read)
        self.rules, self.groups, self._shapes = [], {}, {}
        self.change(library, forms)

    def settle(self) -> None:
        """Form groups anew: instances of rules in cells move to cells, the others are armed."""
        self._form_groups({rule.name: rule for rule in self.rules})
        self._make_routines()
        self.set_alarms()

    def sweep(self, now: int) -> None:
        """Drop the keys under which a rule stands as before it started."""
        for rule in self.rules:
            rule.sweep(now)
        for group in self.groups.values():
            group.sweep(now)

    def pushes(
        self,
        ordering: Ordering,
        slow_path: PushRoutine,
    ) -> Mapping[str, PushRoutine]:
        """For each type the function that reads an event which comes in order, without lateness.

        Events for which the function is not made go to `slow_path`.
        """
        pushes: dict[str, PushRoutine] = {}

        def remake() -> None:
            has_clock = any(rule.has_clock for rule in self.rules)
            parts = StreamParts(
                ordering,
                self._counts,
                self.numbers,
                self.alarms.heap if has_clock else None,
                self._grouping.earliest if self._with_timers else None,
                slow_path,
                self._counted_read,
                self._let_read,
                self._spread,
                self._read_together,
            )
            for name, each in self._routines.items():
                pushes[name] = partial(self._first_push, pushes, each, parts)

        remake()
        self._remake_pushes = remake
        return pushes

    def _first_push(
        self,
        pushes: dict[str, PushRoutine],
        routines: TypeRoutines,
        parts: StreamParts,
        event: Event,
    ) -> list[Event]:
        """Make the routine of a type when its first event comes: many types never come at all."""
        push = pushes[routines.name] = push_routine(routines, parts)
        return push(event)

    def set_alarms(self) -> None:
        """Arm every instance anew: rules have moved in the library, or instances were restored."""
        self.alarms.clear()
        for rule in self.rules:
            if rule.has_clock:
                for instance in rule.instances.values():
                    instance.armed_for = None
                    self.alarms.arm(rule, rule.order, instance)

    # --- reading --------------------------------------------------------------------------------

    def read(self, event: Event) -> list[Event]:
        made = self.advance(event.time)
        self._deliver(event, None, made)
        return made

    def read_in_parts(self, event: Event) -> Iterator[list[Event]]:
        """What `read` returns, as it is made."""
        yield from self.advance_in_parts(event.time)
        yield self.read(event)

    def advance_in_parts(self, time: int) -> Iterator[list[Event]]:
        """What `advance` returns, in steps of the clock."""
        yield from advance_in_steps(time, self.next_due, self.advance)

    def _counted_read(self, event: Event) -> list[Event]:
        made = self.read(event)
        self._counts.outputs += len(made)
        return made

    def advance(self, time: int) -> list[Event]:
        """Move the clock and fire what is due on the way."""
        made: list[Event] = []
        if not self._with_timers or self._grouping.earliest[0] > time:
            self._fire(time, made)
        elif len(self._with_timers) == 1 and not self._may_fire_alone(time):
            self._with_timers[0].fire_until(time, made)
        else:
            orders: list[AlarmOrder] = []
            self._fire(time, made, orders)
            for group in self._with_timers:
                group.fire_until(time, made, orders)
            self._set_earliest()
            in_turn = sorted(zip(orders, made, strict=True), key=itemgetter(0))
            made = [output for _, output in in_turn]
        return made

    def _fire(self, time: int, made: list[Event], orders: list[AlarmOrder] | None = None) -> None:
        """Fire the alarms of rules by themselves; adds their outputs, and the order of each."""
        alarms = self.alarms
        while alarm := alarms.take(time):
            rule, instance = alarm.owner, alarm.instance
            # What another rule puts out may change what a firing does.
            until = min(time, alarms.heap[0].due - 1) if rule.is_fed and alarms.heap else time
            if rule.ports.timers and instance.skip_idle(until):
                alarms.arm(rule, rule.order, instance)
                continue
            before = len(made)
            fired = instance.fire(alarm.due)
            alarms.arm(rule, rule.order, instance)
            if not rule.is_internal:
                made += fired
            self._spread([(output, rule) for output in fired], made)
            if orders is not None:
                order = (alarm.due, alarm.order, alarm.last_read)
                orders += [order] * (len(made) - before)

    def _set_earliest(self) -> None:
        earliest = min((group.earliest for group in self._with_timers), default=ENDLESS)
        self._grouping.earliest[0] = earliest

    def may_be_due(self, time: int) -> bool:
        if self._with_timers and self._grouping.earliest[0] <= time:
            return True
        return self._may_fire_alone(time)

    def _may_fire_alone(self, time: int) -> bool:
        """Whether a rule by itself may have an alarm up to a time."""
        return bool(self.alarms.heap) and self.alarms.heap[0].due <= time

    def next_due(self) -> int | None:
        """When the next timer fires, if no event comes before."""
        timed: list[Alarms[Rule] | StepGroup] = [self.alarms, *self._with_timers]
        return min((due for each in timed if (due := each.next_due()) is not None), default=None)

    def _deliver(self, event: Event, author: Rule | None, made: list[Event]) -> None:
        waiting = self._readers(event, author, made)
        if waiting:
            self._spread(waiting, made)

    def _spread(self, outputs: Iterable[tuple[Event, Rule]], made: list[Event]) -> None:
        """Let the rules that name its author read each output, then the outputs of this."""
        waiting = deque(outputs)
        while waiting:
            event, author = waiting.popleft()
            waiting.extend(self._readers(event, author, made))

    def _readers(
        self, event: Event, author: Rule | None, made: list[Event]
    ) -> Sequence[tuple[Event, Rule]]:
        asked = event.type, None if author is None else author.name
        try:
            look = self._looks[asked]
        except KeyError:
            look = self._looks[asked] = self._look_for(*asked)
        if look is None:
            return ()
        plan, keys = look(event)
        return self._read_plan(plan, keys, event, made)

    def _look_for(self, type_name: str, author: str | None) -> LookRoutine | None:
        """The look at events of a type from outside or of an author; None if no rule reads them."""
        routines = self._routines.get(type_name)
        if routines is not None and author is not None:
            # Rules that read others are in no group.
            routines = TypeRoutines(type_name, self._types, self.rules, None, author)
        return look_routine(routines) if routines is not None and routines.has_readers else None

    def _read_plan(
        self,
        plan: ReadPlan,
        keys: Sequence[FastKey | None],
        event: Event,
        made: list[Event],
    ) -> Sequence[tuple[Event, Rule]]:
        readers, together = (plan, ()) if isinstance(plan, tuple) else (plan.readers, plan.groups)
        waiting: list[tuple[Event, Rule]] = []
        before = len(made)
        for _, _, mask, key, reader, ports in readers:
            outputs = self._let_read(reader, keys[key], mask, ports, event)
            if not reader.is_internal:
                made += outputs
            if reader.is_fed_from:
                waiting += [(output, reader.author) for output in outputs]
        if not together:
            return waiting
        sources = int(len(made) > before)
        numbered = (next(self.numbers), event)
        for reading in together:
            so_far = len(made)
            reading.group.read(
                reading.visits, reading.is_noop, keys[reading.key], numbered, self._counts, made
            )
            sources += len(made) > so_far
        if sources > 1:
            made[before:] = sorted(made[before:], key=self._order_of)
        if self._grouping.has_outgrown:
            self._regroup()
        return waiting

    def _regroup(self) -> None:
        """Let rules leave their cells whose tables keep growing."""
        self._grouping.has_outgrown = False
        self.settle()

    def _order_of(self, output: Event) -> int:
        order: int = self._orders[output.extensions["correlation"]]
        return order

    def _read_together(
        self, plan: MixedReadPlan, keys: Sequence[FastKey | None], event: Event
    ) -> list[Event]:
        """Read an event that comes in order, where rules in cells read it."""
        is_due = self._with_timers and self._grouping.earliest[0] <= event.time
        made = self.advance(event.time) if is_due else []
        waiting = self._read_plan(plan, keys, event, made)
        if waiting:
            self._spread(waiting, made)
        self._counts.outputs += len(made)
        return made

    def _let_read(
        self,
        reader: Rule | SplitReading,
        key: FastKey | None,
        mask: int,
        ports: frozenset[str],
        event: Event,
    ) -> list[Event]:
        if isinstance(reader, SplitReading):
            return self._split(reader, event)
        instance, made = reader.read(key, mask, ports, event, self._counts)
        if instance is not None and reader.has_clock:
            self.alarms.arm(reader, reader.order, instance)
        return made

    def _split(self, reader: SplitReading, event: Event) -> list[Event]:
        made: list[Event] = []
        readings = list(reader.readings(event))
        if not readings:
            self._counts.without_key[reader.rule.name] += 1
        for key, mask, ports in readings:
            made += self._let_read(reader.rule, key, mask, ports, event)
        return made
