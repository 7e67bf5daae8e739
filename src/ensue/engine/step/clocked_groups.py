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

from ensue.engine.batch.filled import taller
from ensue.engine.batch.kernels import FAR
from ensue.engine.outputs import TIMER
from ensue.engine.step.boards import Board, KeyState
from ensue.engine.step.clocked_kernels import (
    ALARMS,
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
    RULE,
    STARTED,
    STATE,
    USED,
    fire_until,
    next_alarm,
    set_alarms,
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
        self._timers = self._timer_ports = 0
        self._cells = np.zeros((FEWEST_CELLS, DUE), np.int64)
        self._heap = np.zeros((FEWEST_CELLS + 1, 3), np.int64)
        self._fired = np.zeros((1, FIRED), np.int64)
        self._status = np.zeros(8, np.int64)
        # The first cell is nobody's.
        self._status[USED] = 1
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
        set_alarms(self._cells, self._tables.rules, self._heap, self._status)
        self._earliest[0] = min(self._earliest[0], self.earliest)

    def _forget(self, gone: Sequence[int]) -> None:
        super()._forget(gone)
        used = self._status[USED]
        stays = ~np.isin(self._cells[:used, RULE], gone)
        stays[0] = True
        now_at = np.where(stays, np.cumsum(stays) - 1, 0).astype(np.uint32)
        kept = self._cells[:used][stays]
        self._cells[: len(kept)] = kept
        self._cells[len(kept) : used] = 0
        self._status[USED] = len(kept)
        for _, _, held in self.board.held_by(self):
            if held is not None:
                held.where = now_at[held.where]
        self._rung = {who: count for who, count in self._rung.items() if who[1] not in gone}

    def _forget_held(self, held: ClockedKey, gone: Sequence[int]) -> None:
        held.where[[*gone]] = 0

    def _make_room(self, more: int) -> None:
        super()._make_room(more)
        self._cells[1 : self._status[USED], RULE] += more
        self._rung = {(key, number + more): count for (key, number), count in self._rung.items()}

    def _shift_held(self, held: ClockedKey, more: int) -> None:
        held.where = np.concatenate([np.zeros(more, np.uint32), held.where])

    def _look_at_members(self) -> None:
        kinds = {number: self.kind_of(rule) for number, rule in self.members.items()}
        started = {n: self._started.get(r.name, r.started) for n, r in self.members.items()}
        tables = self._tables
        tables.set_clocked_rules(kinds, self.members, started)
        self._lay_out(tables.timers, tables.timer_ports, tables.registers)
        self._by_action, self._clocks_of, self._alarms = {}, {}, {}
        rows = max(len(kinds), ALARMS_AT_ONCE)
        self._fired = np.zeros((rows, FIRED + tables.timer_ports), np.int64)
        # Compiled loops are loaded now, and not when the first event waits for its answer.
        self.visit(ClockedKey(0, len(tables.rules)), self.visits_of(()), 0)
        for _ in self._due(-FAR):
            raise AssertionError("nothing is due before all times")

    def _lay_out(self, timers: int, timer_ports: int, registers: int) -> None:
        """Have so many columns in a cell for due times, for firings of timer ports, and so on."""
        before, used = self._cells, self._status[USED]
        had_fired, has_fired = DUE + self._timers, DUE + timers
        had_registers, has_registers = had_fired + self._timer_ports, has_fired + timer_ports
        width = max(has_registers + registers, before.shape[1] - had_registers + has_registers)
        self._timers, self._timer_ports = timers, timer_ports
        if width == before.shape[1] and has_fired == had_fired and has_registers == had_registers:
            return
        self._cells = np.zeros((len(before), width), np.int64)
        for had, has, end in (
            (0, 0, had_fired),
            (had_fired, has_fired, had_registers),
            (had_registers, has_registers, before.shape[1]),
        ):
            # Where rules with the most timers are gone, their columns are nobody's.
            count = min(end - had, width - has)
            self._cells[:used, has : has + count] = before[:used, had : had + count]

    def _new_cell(self, held: ClockedKey, number: int) -> int:
        cell = int(self._status[USED])
        if cell == len(self._cells):
            self._grow()
        self._status[USED] = cell + 1
        held.where[number] = cell
        return cell

    def _grow(self) -> None:
        size = 2 * len(self._cells)
        self._cells = taller(self._cells, size, 0)
        self._heap = taller(self._heap, size + 1, 0)

    def _absorb(self, rule: Rule, number: int) -> None:
        super()._absorb(rule, number)
        self._tables.rules[number, STARTED] = rule.started

    def _place(self, state: KeyState, held: ClockedKey, instance: Runner, number: int) -> None:  # noqa: ARG002
        at, times = self._place_of(instance, number)
        self._lay_out(self._timers, self._timer_ports, self._tables.registers)
        shape = self._tables.shapes[self.kind_of(self.members[number])]
        timers, ports = timers_of(shape), self.members[number].ports.timers
        due = [instance.timers_due[port.name] for port in ports]
        timeouts = instance.timeouts if isinstance(instance, EclRunner) else {}
        due += [timeouts.get(timer.state, FAR) for timer in timers.timeouts]
        running = running_in(shape.filled, at)
        nearest = min((each for n, each in enumerate(due) if running >> n & 1), default=FAR)
        cell = self._cells[self._new_cell(held, number)]
        cell[: DUE + len(due)] = at, number, held.number, instance.number, nearest, 0, *due
        if isinstance(instance, FilterRunner):
            bound = _times_bound(instance)
            for number_of_port, port in enumerate(ports):
                if port.name in bound:
                    cell[DUE + self._timers + number_of_port] = bound[port.name]
        registers_at = self._registers_at
        cell[registers_at : registers_at + len(times)] = times

    @property
    def _registers_at(self) -> int:
        return DUE + self._timers + self._timer_ports

    def _is_under_way(self, held: ClockedKey, number: int) -> bool:
        return bool(held.where[number])

    def _stand(self, state: KeyState, held: ClockedKey, instance: Runner, number: int) -> None:  # noqa: ARG002
        cell = self._cells[held.where[number]].tolist()
        self._put(instance, number, cell[STATE], cell[self._registers_at :])
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
        fired_at = DUE + self._timers
        by_port = {port.name: fired_at + n for n, port in enumerate(ports)}
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
        tables, fired = self._tables, self._fired
        while True:
            count = visit(
                held.where,
                held.number,
                self._cells,
                visits,
                tables.rules,
                tables.moves,
                self._heap,
                now,
                self._earliest,
                fired,
                self._status,
            )
            if count >= 0:
                break
            self._mend(count)
        said: list[Row] = fired[:count].tolist() if count else []
        return said

    def _mend(self, lacks: int) -> None:
        """Provide what a loop could not go on without."""
        status, tables = self._status, self._tables
        if lacks == LACKS_A_MOVE:
            asked = status[[LACKING_RULE, LACKING_STATE, LACKING_LETTER, EVENTS]].tolist()
            self._fill(*asked)
        elif lacks == LACKS_A_CELL:
            self._grow()
        else:
            self._lay_out(self._timers, self._timer_ports, tables.registers)

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
            if self._timer_ports and (clocks := self._clocks_in(action, 0)):
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
        return int(self._heap[1, 0]) if self._status[ALARMS] else FAR

    def next_due(self) -> int | None:
        due = int(next_alarm(self._cells, self._heap, self._status))
        return None if due == FAR else due

    def ring(self, limit: int, made: list[Event], orders: list[Order] | None = None) -> None:
        """Fire all that is due up to a time; adds what is put out, and where each belongs."""
        states, known, has_clocks = self._states, self._alarms, bool(self._timer_ports)
        rung_at, rung = self._rung_at, self._rung
        for rows in self._due(limit):
            for row in rows:
                number, action, time, key, instance = row[:FIRED] if has_clocks else row
                if time != rung_at:
                    rung_at, rung = time, {}
                state, who = states[key], (key, number)
                count = rung.get(who, 0)
                begun = count
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

    def _due(self, limit: int) -> Iterator[list[Row]]:
        """What fires up to a time, in order, so many at once."""
        while True:
            tables, fired = self._tables, self._fired
            count = fire_until(
                limit, self._cells, tables.rules, tables.moves, self._heap, fired, self._status
            )
            if count == LACKS_ROOM:
                self._status[COUNT] = 0
                yield fired.tolist()
            elif count < 0:
                self._mend(count)
            else:
                if count:
                    yield fired[:count].tolist()
                return


def _times_bound(instance: FilterRunner) -> dict[str, int]:
    """What is bound to timer ports; of several places of a port the last firing counts."""
    facts, found = instance.facts, dict[str, int]()
    for place, noted in enumerate(instance.places[: facts.place_count]):
        if noted is not None and isinstance(noted[1], int):
            port = facts.ports[place]
            found[port] = max(found.get(port, noted[1]), noted[1])
    return found
