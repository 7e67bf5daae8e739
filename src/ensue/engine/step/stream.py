"""A library over a stream, quickly: what `ensue.engine.stream` says, with routines made for it.

One clock for the whole stream. An event first moves it, and what is due fires; then the rules that
want the event read it, in the order of the library; what they put out is read by the others after
that, first in, first out. Rules come and go while it runs: those that stay keep their instances.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from ensue.engine.changing import is_unchanged
from ensue.engine.counts import Counts
from ensue.engine.instance import Instance
from ensue.engine.ordering import Ordering
from ensue.engine.outputs import TIMER, carries_key
from ensue.engine.step.boards import Board
from ensue.engine.step.companies import NO_ALARM, Companies, Order
from ensue.engine.step.groups import Group
from ensue.engine.step.routines import (
    Look,
    Plan,
    Push,
    SplitReading,
    TypeRoutines,
    compile_look,
    compile_push,
)
from ensue.engine.step.rows import SharedRows
from ensue.engine.step.rules import FastKey, Rule, SavedForm
from ensue.engine.step.shapes import Shape
from ensue.events.event import Event
from ensue.lang.checked import CheckedLibrary
from ensue.machine.limits import MachineLimits
from ensue.machine.prepared import brought_plan

if TYPE_CHECKING:
    from ensue.engine.step.clocked_groups import ClockedGroup


@dataclass(order=True, slots=True)
class Alarm:
    """A due time of an instance. The numbers order those that are due together."""

    due: int
    place: int
    number: int
    rule: Rule = field(compare=False)
    instance: Instance = field(compare=False)


class StepStream:
    """Reads events in the order of their times; whoever calls has put them in order."""

    def __init__(self, library: CheckedLibrary, counts: Counts, limits: MachineLimits) -> None:
        self.rules: list[Rule] = []
        self.numbers = count(1)
        self.alarms: list[Alarm] = []
        self._counts = counts
        self._shared = SharedRows(limits)
        self._types = library.types
        self._routines: dict[str, TypeRoutines] = {}
        self._looks: dict[str, Look] = {}
        self._remakes: list[Callable[[], None]] = []
        self.groups: dict[Shape, Group] = {}
        self._shapes: dict[str, Shape] = {}
        self.boards: dict[tuple[str, ...], Board] = {}
        self.apart = False
        self._alone: AbstractSet[str] = frozenset()
        self._companies = Companies()
        self._clocked: list[ClockedGroup] = []
        self._places: Mapping[str, int] = {}
        self.change(library)

    # --- rules that come and go -----------------------------------------------------------------

    def change(self, library: CheckedLibrary, saved: Mapping[str, SavedForm] | None = None) -> None:
        """Run another library from now on. A rule that means the same keeps its instances.

        `saved` holds the forms that rules had in a snapshot, where they are to go on with them.
        """
        known = {rule.name: rule for rule in self.rules}
        staying: dict[str, Rule] = {}
        rules = []
        for place, correlation in enumerate(library.correlations):
            old = known.get(correlation.name)
            stays = old is not None and is_unchanged(
                old.correlation, correlation, self._types, library.types
            )
            form = (saved or {}).get(correlation.name)
            brought = brought_plan(library, correlation) if form is None else None
            if brought is not None:
                form = brought.run_as
            if stays and old is not None:
                form = old.saved_form
            rule = Rule(correlation, library.types, self._shared, self.numbers, form)
            if stays and old is not None:
                rule.take_over(old)
            rule.place = place
            rule.is_fed_from = bool(library.feeds.get(rule.name))
            if stays and old is not None:
                staying[rule.name] = old
            rules.append(rule)
        self.rules = rules
        self._types = library.types
        fed = {name for readers in library.feeds.values() for name in readers}
        self._alone = fed | {name for name, readers in library.feeds.items() if readers}
        self._alone |= {
            each.name for each in library.correlations if carries_key(each, library.types)
        }
        self._form_groups(staying)
        self._make_routines()
        self.set_alarms()

    def _form_groups(self, staying: Mapping[str, Rule]) -> None:
        """Put rules of one shape together; `staying` are those that go on as they were."""
        together = [] if self.apart else [r for r in self.rules if r.name not in self._alone]
        chosen = self._companies.chosen(together, self._types, self.groups)
        named = {rule.name: shape for shape, rules in chosen.items() for rule in rules}
        going_on = {name for name in staying if named.get(name) == self._shapes.get(name)}
        for rule in self.rules:
            old = staying.get(rule.name)
            if old is not None and old.group is not None and rule.name not in going_on:
                rule.instances, rule.started = dict(old.group.instances_of(old)), old.started_so_far
                rule.group = None
        groups = {shape: self.groups[shape] for shape in chosen if shape in self.groups}
        for group in dict.fromkeys(self.groups.values()):
            if group not in groups.values():
                group.board.leave(group)
        for shape, rules in chosen.items():
            if shape not in groups:
                names = next(iter(rules[0].ports.key_names.values()))
                board = self.boards.setdefault(names, Board(names))
                groups[shape] = self._companies.group_for(
                    shape, rules[0], board, groups.values(), self._types, self.numbers
                )
            groups[shape].make_room_for(shape, rules[0])
        members: dict[Group, dict[Rule, Shape]] = {group: {} for group in groups.values()}
        for rule in self.rules:
            if rule.name in named:
                members[groups[named[rule.name]]][rule] = named[rule.name]
        for group, taken in members.items():
            group.take(taken, going_on, self._types)
        self._shapes = named
        self.groups = groups
        self._clocked = cast("list[ClockedGroup]", [group for group in members if group.has_alarms])
        self._set_earliest()
        self._places = {rule.name: rule.place for rule in self.rules}

    def _make_routines(self) -> None:
        self._routines = {
            each.name: TypeRoutines(each.name, self._types, self.rules) for each in self._types
        }
        self._looks = {}
        for remake in self._remakes:
            remake()

    def begin_again(
        self, library: CheckedLibrary, forms: Mapping[str, SavedForm], read: int, apart: bool
    ) -> None:
        """Be as new, with rules in the forms of a snapshot, for their instances to be put in."""
        self.apart = apart
        self.numbers = count(read)
        self.rules, self.groups, self.boards, self._shapes = [], {}, {}, {}
        self.change(library, forms)

    def settle(self) -> None:
        """Instances were brought back: those of groups go there, and the others are armed."""
        self._form_groups({rule.name: rule for rule in self.rules})
        self._make_routines()
        self.set_alarms()

    def sweep(self, now: int) -> None:
        """Let go of the keys that stand as before they started."""
        for rule in self.rules:
            rule.sweep(now)
        for board in self.boards.values():
            board.sweep(now)

    def pushes(
        self,
        ordering: Ordering,
        unusual: Push,
    ) -> Mapping[str, Push]:
        """For each type the whole way of an event that comes in order; there is no lateness."""
        around: dict[str, Any] = {
            "ordering": ordering,
            "unusual": unusual,
            "counts": self._counts,
            "alarms": self.alarms,
            "numbers": self.numbers,
            "after_alarms": self._counted_read,
            "let_read": self._let_read,
            "spread": self._spread,
            "read_together": self._read_together,
        }
        pushes: dict[str, Push] = {}

        def remake() -> None:
            around.pop("earliest", None)
            if self._clocked:
                around["earliest"] = self._companies.earliest
            for name, each in self._routines.items():
                pushes[name] = partial(self._first_push, pushes, each, around, unusual)

        remake()
        self._remakes = [remake]
        return pushes

    def _first_push(
        self,
        pushes: dict[str, Push],
        routines: TypeRoutines,
        around: Mapping[str, Any],
        unusual: Push,
        event: Event,
    ) -> list[Event]:
        """Make the routine of a type when its first event comes: many types never come at all."""
        push = pushes[routines.name] = compile_push(routines, around) or unusual
        return push(event)

    def set_alarms(self) -> None:
        """Arm every instance anew: places have changed, or instances were brought back."""
        self.alarms.clear()
        for rule in self.rules:
            if rule.has_clock:
                for instance in rule.instances.values():
                    instance.armed_for = None
                    self._arm(rule, instance)

    # --- reading --------------------------------------------------------------------------------

    def read(self, event: Event) -> list[Event]:
        made = self.advance(event.time)
        self._deliver(event, None, made)
        return made

    def _counted_read(self, event: Event) -> list[Event]:
        made = self.read(event)
        self._counts.outputs += len(made)
        return made

    def advance(self, time: int) -> list[Event]:
        """Move the clock and fire what is due on the way."""
        made: list[Event] = []
        if not self._clocked or self._companies.earliest[0] > time:
            self._fire(time, made)
        elif len(self._clocked) == 1 and not (self.alarms and self.alarms[0].due <= time):
            self._clocked[0].ring(time, made)
        else:
            orders: list[Order] = []
            self._fire(time, made, orders)
            for group in self._clocked:
                group.ring(time, made, orders)
            self._set_earliest()
            in_turn = sorted(zip(orders, made, strict=True), key=itemgetter(0))
            made = [output for _, output in in_turn]
        return made

    def _fire(self, time: int, made: list[Event], orders: list[Order] | None = None) -> None:
        """Fire the alarms of rules by themselves; adds what is put out, and where it belongs."""
        alarms = self.alarms
        while alarms and alarms[0].due <= time:
            alarm = heapq.heappop(alarms)
            # What has become of an instance since may have moved its due time elsewhere.
            if alarm.due == alarm.instance.next_due():
                alarm.instance.armed_for = None
                begun = len(made)
                fired = alarm.instance.fire(alarm.due)
                self._arm(alarm.rule, alarm.instance)
                made += fired
                self._spread([(output, alarm.rule) for output in fired], made)
                if orders is not None:
                    order = (alarm.due, alarm.place, alarm.number)
                    orders += [order] * (len(made) - begun)

    def _set_earliest(self) -> None:
        earliest = min((group.earliest for group in self._clocked), default=NO_ALARM)
        self._companies.earliest[0] = earliest

    def next_due(self) -> int | None:
        """When the next timer fires, if no event comes before."""
        alarms = self.alarms
        while alarms and alarms[0].due != alarms[0].instance.next_due():
            heapq.heappop(alarms)
        due = [alarms[0].due] if alarms else []
        due += [at for group in self._clocked if (at := group.next_due()) is not None]
        return min(due, default=None)

    def _deliver(self, event: Event, author: Rule | None, made: list[Event]) -> None:
        waiting = self._readers(event, author, made)
        if waiting:
            self._spread(waiting, made)

    def _spread(self, outputs: Iterable[tuple[Event, Rule]], made: list[Event]) -> None:
        """Let every rule but its author read each output, and what comes of it in turn."""
        waiting = deque(outputs)
        while waiting:
            event, author = waiting.popleft()
            waiting.extend(self._readers(event, author, made))

    def _readers(
        self, event: Event, author: Rule | None, made: list[Event]
    ) -> Sequence[tuple[Event, Rule]]:
        look = self._looks.get(event.type)
        if look is None:
            routines = self._routines.get(event.type)
            if routines is None or not routines.is_wanted:
                return ()
            look = self._looks[event.type] = compile_look(routines)
        plan, keys = look(event)
        return self._read_plan(plan, keys, event, author, made)

    def _read_plan(
        self,
        plan: Plan,
        keys: Sequence[FastKey | None],
        event: Event,
        author: Rule | None,
        made: list[Event],
    ) -> Sequence[tuple[Event, Rule]]:
        readers, together = (plan, ()) if isinstance(plan, tuple) else (plan.readers, plan.groups)
        waiting: list[tuple[Event, Rule]] = []
        begun = len(made)
        for _, _, mask, key, reader, ports in readers:
            if reader.author is not author:
                outputs = self._let_read(reader, keys[key], mask, ports, event)
                made += outputs
                if reader.is_fed_from:
                    waiting += [(output, reader.author) for output in outputs]
        if not together:
            return waiting
        if event.id == TIMER:
            for group in self._clocked:
                group.count_as_made()
        mixed, times = len(made) > begun, 0
        noted = (next(self.numbers), event)
        for reading in together:
            times += reading.board.read(reading, keys[reading.key], noted, self._counts, made)
        if times > 1 or (times and mixed):
            made[begun:] = sorted(made[begun:], key=self._place_of)
        if self._companies.has_outgrown:
            self._companies.has_outgrown = False
            self.settle()
        return waiting

    def _place_of(self, output: Event) -> int:
        place: int = self._places[output.extensions["correlation"]]
        return place

    def _read_together(
        self, plan: Plan, keys: Sequence[FastKey | None], event: Event
    ) -> list[Event]:
        """The way of an event that comes in order, where groups of rules read it."""
        is_due = self._clocked and self._companies.earliest[0] <= event.time
        made = self.advance(event.time) if is_due else []
        waiting = self._read_plan(plan, keys, event, None, made)
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
            self._arm(reader, instance)
        return made

    def _split(self, reader: SplitReading, event: Event) -> list[Event]:
        made: list[Event] = []
        readings = list(reader.readings(event))
        if not readings:
            self._counts.without_key[reader.rule.name] += 1
        for key, mask, ports in readings:
            made += self._let_read(reader.rule, key, mask, ports, event)
        return made

    def _arm(self, rule: Rule, instance: Instance) -> None:
        due = instance.next_due()
        if due is not None and due != instance.armed_for:
            heapq.heappush(self.alarms, Alarm(due, rule.place, instance.number, rule, instance))
        instance.armed_for = due
