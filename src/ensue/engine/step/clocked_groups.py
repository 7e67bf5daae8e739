"""Rules with timers, each with a cell of its own: events visit those that want them, and alarms.

In come rules with timer ports and timeouts (`clocked_shapes`). A rule under a key has a *cell* from
the first event on that it reads there: its state in the table of its shape (`clocked_tables`), when
each of its timers is due, and registers with the times of its starts. An event goes through the
cells of the rules that want it in one call of a compiled loop, and one call fires all alarms up to
a time, whatever their keys are, in the order of the stream (`clocked_kernels`). So the cells of all
keys are in one array; a key has only the numbers of its own.

What is bound to a port is the last event of a letter, as for all groups; a timer port is bound to
the time of its last firing, which the cell has.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ensue.engine.core.jit import FAR
from ensue.engine.outputs import TIMER
from ensue.engine.step.boards import Board, KeyState
from ensue.engine.step.clocked_cells import ClockedCells
from ensue.engine.step.clocked_kernels import (
    COUNT,
    DUE,
    EVENTS,
    FIRED,
    LACKING_LETTER,
    LACKING_RULE,
    LACKING_STATE,
    LACKS_A_CELL,
    LACKS_A_MOVE,
    LACKS_ROOM,
    NUMBER,
    STARTED,
    STATE,
    fire_until,
    visit,
)
from ensue.engine.step.clocked_tables import ClockedTables, running_in, timers_of
from ensue.engine.step.companies import Order
from ensue.engine.step.ecl import EclRunner
from ensue.engine.step.emitting import compile_alarm
from ensue.engine.step.filters import FilterRunner
from ensue.engine.step.groups import Runner, Volley
from ensue.engine.step.rules import Rule
from ensue.engine.step.shapes import Shape
from ensue.engine.step.sliced import Fires, What
from ensue.engine.step.visited_groups import VisitedGroup
from ensue.engine.step.volleys import Gathered, Own
from ensue.events.event import Event
from ensue.events.types import TypeSystem

FEWEST_CELLS = 64
ALARMS_AT_ONCE = 1024
"""How many alarms are fired before their outputs are made: a clock may jump by days."""

Row = list[int]
"""What has fired, as `clocked_kernels` writes it."""

Alarmed = tuple[Callable[..., None], list[Any], list[int], int]
"""What follows an alarm: a routine, what it has to know of each rule, by numbers, the timer ports
that are bound, and how many events it makes."""


class ClockedKey:
    """What a key has: its number, and `where` each rule has its cell (0: it has not started)."""

    __slots__ = ("number", "where")

    def __init__(self, number: int, rules: int) -> None:
        self.number = number
        self.where = np.zeros(rules, np.uint32)


class ClockedGroup(VisitedGroup):
    """Rules with timers. `earliest` is shared by all: a time before which no alarm is due."""

    has_alarms = True

    def __init__(
        self,
        board: Board,
        types: TypeSystem,
        numbers: Iterator[int],
        outgrown: Callable[[Shape], None],
        earliest: array[int],
    ) -> None:
        super().__init__(board, types, numbers, outgrown)
        self._tables: ClockedTables = ClockedTables()
        self._earliest = np.frombuffer(earliest, np.int64)
        self._states: list[KeyState] = []
        self._started: dict[str, int] = {}
        self._cells = ClockedCells()
        self._fired = np.zeros((1, FIRED), np.int64)
        self._clocks_of: dict[tuple[int, int], list[int]] = {}
        self._alarms: dict[int, list[Alarmed]] = {}
        self._routines: dict[object, Callable[..., None]] = {}
        # What was put out at the last alarms, by the numbers of key and rule: ids count it.
        self._rung: dict[tuple[int, int], int] = {}
        self._rung_at = -FAR

    # --- who belongs to it ----------------------------------------------------------------------

    def take(self, rules: Mapping[Rule, Shape], staying: Container[str], types: TypeSystem) -> None:
        stay = [rule for rule in self.members.values() if rule.name in staying]
        self._started = {rule.name: self.started_of(rule) for rule in stay}
        super().take(rules, staying, types)
        self._cells.set_alarms(self._tables.rules)

    def _forget(self, gone: Sequence[int]) -> None:
        super()._forget(gone)
        now_at = self._cells.forget(gone)
        for _, _, held in self.board.held_by(self):
            if held is not None:
                held.where = now_at[held.where]
        self._rung = {who: count for who, count in self._rung.items() if who[1] not in gone}

    def _forget_held(self, held: ClockedKey, gone: Sequence[int]) -> None:
        held.where[[*gone]] = 0

    def _make_room(self, more: int) -> None:
        super()._make_room(more)
        self._cells.renumber(more)
        self._rung = {(key, number + more): count for (key, number), count in self._rung.items()}

    def _shift_held(self, held: ClockedKey, more: int) -> None:
        held.where = np.concatenate([np.zeros(more, np.uint32), held.where])

    def _look_at_members(self) -> None:
        kinds = {number: self.kind_of(rule) for number, rule in self.members.items()}
        started = {n: self._started.get(r.name, r.started) for n, r in self.members.items()}
        tables = self._tables
        tables.set_clocked_rules(kinds, self.members, started)
        self._cells.lay_out(tables.timers, tables.timer_ports, tables.registers)
        self._by_action, self._clocks_of, self._alarms = {}, {}, {}
        rows = max(len(kinds), ALARMS_AT_ONCE)
        self._fired = np.zeros((rows, FIRED + tables.timer_ports), np.int64)
        # Compiled loops are loaded now, and not when the first event waits for its answer.
        self.visit(ClockedKey(0, len(tables.rules)), self.visits_of(()), 0)
        self.ring(-FAR, [])

    def _absorb(self, rule: Rule, number: int) -> None:
        super()._absorb(rule, number)
        self._tables.rules[number, STARTED] = rule.started

    def _place(self, state: KeyState, held: ClockedKey, instance: Runner, number: int) -> None:  # noqa: ARG002
        at, times = self._place_of(instance, number)
        cells = self._cells
        cells.lay_out(cells.timers, cells.timer_ports, self._tables.registers)
        shape = self._tables.shapes[self.kind_of(self.members[number])]
        timers, ports = timers_of(shape), self.members[number].ports.timers
        due = [instance.timers_due[port.name] for port in ports]
        timeouts = instance.timeouts if isinstance(instance, EclRunner) else {}
        due += [timeouts.get(timer.state, FAR) for timer in timers.timeouts]
        running = running_in(shape.filled, at)
        nearest = min((each for n, each in enumerate(due) if running >> n & 1), default=FAR)
        held.where[number] = cells.new()
        cell = cells.array[held.where[number]]
        cell[: DUE + len(due)] = at, number, held.number, instance.number, nearest, 0, *due
        if isinstance(instance, FilterRunner):
            bound = _times_bound(instance)
            for number_of_port, port in enumerate(ports):
                if port.name in bound:
                    cell[cells.fired_at + number_of_port] = bound[port.name]
        cell[cells.registers_at : cells.registers_at + len(times)] = times

    def _is_under_way(self, held: ClockedKey, number: int) -> bool:
        return bool(held.where[number])

    def _stand(self, state: KeyState, held: ClockedKey, instance: Runner, number: int) -> None:  # noqa: ARG002
        cells = self._cells
        cell = cells.array[held.where[number]].tolist()
        self._put(instance, number, cell[STATE], cell[cells.registers_at :])
        instance.number = cell[NUMBER]
        shape = self._tables.shapes[self.kind_of(self.members[number])]
        timers, ports = timers_of(shape), self.members[number].ports.timers
        instance.timers_due = {port.name: cell[DUE + n] for n, port in enumerate(ports)}
        if isinstance(instance, EclRunner):
            running = running_in(shape.filled, cell[STATE])
            instance.timeouts = {
                timer.state: cell[DUE + n]
                for n, timer in enumerate(timers.timeouts, len(ports))
                if running >> n & 1
            }
            return
        by_port = {port.name: cells.fired_at + n for n, port in enumerate(ports)}
        for place, port in instance.facts.ports.items():
            if port in by_port and instance.is_active(instance.facts.bound_states[place]):
                instance.places[place] = (0, cell[by_port[port]])

    def _note_made(
        self, state: KeyState, held: ClockedKey, number: int, time: int, made: Mapping[str, int]
    ) -> None:
        by_events = {trigger: count for trigger, count in made.items() if trigger != TIMER}
        if by_events:
            super()._note_made(state, held, number, time, by_events)
        if TIMER in made and time >= self._rung_at:
            if time != self._rung_at:
                self._rung_at, self._rung = time, {}
            self._rung[held.number, number] = made[TIMER]

    def _made(
        self, state: KeyState, held: ClockedKey, number: int
    ) -> tuple[int | None, dict[str, int]]:
        time, made = super()._made(state, held, number)
        rung = self._rung.get((held.number, number))
        if not rung or (time is not None and time > self._rung_at):
            return time, made
        return self._rung_at, {**(made if time == self._rung_at else {}), TIMER: rung}

    def started_of(self, rule: Rule) -> int:
        return int(self._tables.rules[self.number(rule), STARTED])

    # --- reading --------------------------------------------------------------------------------

    def is_nothing(self, visits: Any) -> bool:  # noqa: ARG002
        """Whoever reads an event counts the time from there."""
        return False

    def new_list(self, state: KeyState) -> ClockedKey:
        self._states.append(state)
        return ClockedKey(len(self._states) - 1, len(self._tables.rules))

    def visit(self, held: ClockedKey, visits: Any, now: int) -> Sequence[Row]:
        tables, cells, fired = self._tables, self._cells, self._fired
        while True:
            count = visit(
                held.where, held.number, cells.array, visits, tables.rules, tables.moves,
                cells.heap, now, self._earliest, fired, cells.status,
            )  # fmt: skip
            if count >= 0:
                break
            self._mend(count)
        said: list[Row] = fired[:count].tolist() if count else []
        return said

    def _mend(self, lacks: int) -> None:
        """Provide what a loop could not go on without."""
        cells = self._cells
        if lacks == LACKS_A_MOVE:
            self._fill(
                *cells.status[[LACKING_RULE, LACKING_STATE, LACKING_LETTER, EVENTS]].tolist()
            )
        elif lacks == LACKS_A_CELL:
            cells.grow()
        else:
            cells.lay_out(cells.timers, cells.timer_ports, self._tables.registers)

    def is_idle(self, state: KeyState, held: ClockedKey, now: int) -> bool:  # noqa: ARG002
        """A rule that has started counts the time from there."""
        return not held.where.any()

    # --- what fires -----------------------------------------------------------------------------

    def fires(self, found: Sequence[Row]) -> Sequence[Fires]:
        who: dict[What, int] = {}
        for row in found:
            number, action = row[:2]
            kind, _ = self._tables.actions[action]
            for part in range(self._tables.parts_of(action)):
                times = tuple(row[FIRED + at] for at in self._clocks_in(action, part))
                what = (kind, part, action, *times)
                who[what] = who.get(what, 0) | self._bits[number]
        return list(who.items())

    def volley(self, what: What) -> Volley | None:
        """The same where timers are bound: then the times are part of what has fired."""
        plain, times = what[:3], what[3:]
        volley = super().volley(plain)
        if volley is None or not times:
            return volley
        count, routine, members = volley
        return count, routine, [each and (*each, *times) for each in members]

    def _clocks_in(self, action: int, part: int) -> list[int]:
        """Which timer ports are bound in a part of an action, by their numbers."""
        known = self._clocks_of.get((action, part))
        if known is None:
            recipe, _ = self._tables.recipe(action, part, self._types)
            kind, _ = self._tables.actions[action]
            ports = [port.name for port in timers_of(self._tables.shapes[kind]).ports]
            bound = recipe.ports[len(recipe.event_ports) :]
            known = self._clocks_of[action, part] = [ports.index(port) for port in bound]
        return known

    def gather(self, found: Sequence[Row], by_routine: Gathered, own: Own) -> bool | None:
        bits, known = self._bits, self._by_action
        counts: dict[int, int] = {}
        for row in found:
            number, action = row[0], row[1]
            volley = known[action] if action in known else self._of_action(action)
            if volley is None:
                return None
            count, routine, members = volley
            counts[count] = counts.get(count, 0) | bits[number]
            member = members[number]
            if self._cells.timer_ports and (clocks := self._clocks_in(action, 0)):
                member = (*member, *(row[FIRED + at] for at in clocks))
            if routine in by_routine:
                by_routine[routine].append(member)
            else:
                by_routine[routine] = [member]
        own += [(self.at, who, count) for count, who in counts.items()]
        return self.is_in_order

    # --- alarms ---------------------------------------------------------------------------------

    @property
    def earliest(self) -> int:
        """A time before which none of its alarms is due."""
        return self._cells.earliest

    def next_due(self) -> int | None:
        return self._cells.next_due()

    def ring(self, limit: int, made: list[Event], orders: list[Order] | None = None) -> None:
        """Fire all that is due up to a time; adds what is put out, and where each belongs."""
        tables, cells, fired = self._tables, self._cells, self._fired
        while True:
            count = fire_until(
                limit, cells.array, tables.rules, tables.moves, cells.heap, self._earliest,
                fired, cells.status,
            )  # fmt: skip
            if count > 0:
                self._put_out(fired[:count].tolist(), made, orders)
            elif count == LACKS_ROOM:
                cells.status[COUNT] = 0
                self._put_out(fired.tolist(), made, orders)
            elif count < 0:
                self._mend(count)
            if count >= 0:
                return

    def _put_out(
        self, rows: Sequence[Row], made: list[Event], orders: list[Order] | None = None
    ) -> None:
        """Add what alarms put out that have fired, in their order."""
        states, known, has_clocks = self._states, self._alarms, bool(self._cells.timer_ports)
        rung_at, rung = self._rung_at, self._rung
        for row in rows:
            number, action, time, key, instance = row[:FIRED] if has_clocks else row
            if time != rung_at:
                rung_at, rung = time, {}
            state, who = states[key], (key, number)
            count = begun = rung.get(who, 0)
            for routine, members, clocks, each in known.get(action) or self._alarm(action):
                member = members[number]
                if clocks:
                    member = (*member, *(row[FIRED + clock] for clock in clocks))
                routine(made, state.last, state.text, time, count, *member)
                count += each
            rung[who] = count
            if orders is not None:
                order = time, self.members[number].place, instance
                orders += [order] * (count - begun)
        self._rung_at, self._rung = rung_at, rung

    def _alarm(self, action: int) -> list[Alarmed]:
        """How an action is put out at an alarm, part by part."""
        kind, _ = self._tables.actions[action]
        found = self._alarms[action] = []
        for part in range(self._tables.parts_of(action)):
            volley = self.volley((kind, part, action))
            if volley is not None:
                recipe, _ = self._tables.recipe(action, part, self._types)
                routine = self._routines.get(recipe.kind)
                if routine is None:
                    routine = self._routines[recipe.kind] = compile_alarm(recipe)
                found.append((routine, volley[2], self._clocks_in(action, part), volley[0]))
        return found

    def count_as_made(self) -> None:
        """An event may be called as alarms are: then ids go on from what alarms have put out."""
        for (key, number), count in self._rung.items():
            made = {TIMER: count}
            super()._note_made(self._states[key], None, number, self._rung_at, made)
        self._rung = {}


def _times_bound(instance: FilterRunner) -> dict[str, int]:
    """What is bound to timer ports; of several places of a port the last firing counts."""
    facts, found = instance.facts, dict[str, int]()
    for place, noted in enumerate(instance.places[: facts.place_count]):
        if noted is not None and isinstance(noted[1], int):
            port = facts.ports[place]
            found[port] = max(found.get(port, noted[1]), noted[1])
    return found
