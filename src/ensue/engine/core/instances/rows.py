"""Tables by bit masks, for a rule that is stepped in Python.

A `Row` is a state of a table. It maps the mask of an event's atoms (bit i: atom i of the machine)
to a `RowMove`: the next row, the places that the event is bound in, and what else happens. Moves
are made when they are first needed, by a pass of the machine (`ensue.machine.bitwise`), and are
shared by all keys and by all rules whose machines have the same structure. Most events of a long
chain do nothing to a row: they share one move, and no pass is made for them. Past the limits of a
table, a row is made for one event and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ensue.engine.core.instances.firing import NumberedEvent
from ensue.lang.derived.label_logic import label_value
from ensue.lang.syntax import LabelExpression
from ensue.machine.bitwise import BitStepper, BitTaken, bits_of, numbers_in
from ensue.machine.limits import DEFAULT_MACHINE_LIMITS, MachineLimits
from ensue.machine.model import Branch, Emit, Machine, State, Switch, Timer
from ensue.machine.stepping import Fired

BindPlaces = Callable[[Any, NumberedEvent], None]


def binding(places: Sequence[int]) -> BindPlaces:
    """`bind(held, numbered)`: puts an event into all of these places of an instance."""
    if len(places) == 1:
        (only,) = places

        def bind_one(held: Any, numbered: NumberedEvent) -> None:
            held.places[only] = numbered

        return bind_one

    def bind(held: Any, numbered: NumberedEvent) -> None:
        for place in places:
            held.places[place] = numbered

    return bind


OutputConditions = tuple[LabelExpression, ...]
"""The conditions of the cases that have statements: a firing for whose labels none of them holds
has no outputs."""


class RowMove:
    """What an event does to a row. `bind` puts the event in its places, if it has any.

    `is_noop`: nothing happens at all, and the row stays.
    """

    __slots__ = ("bind", "effects", "fired", "is_noop", "started", "to")

    def __init__(
        self,
        to: Row,
        binds: tuple[int, ...],
        effects: tuple[Emit | Fired, ...],
        started: tuple[Timer, ...],
        is_loop: bool,
    ) -> None:
        self.to = to
        self.bind = binding(binds) if binds else None
        self.effects = effects
        self.fired = tuple(each for each in effects if isinstance(each, Fired))
        self.started = started
        self.is_noop = is_loop and not (binds or effects or started)


class Row(dict[int, RowMove]):
    """A state of a table: the moves that are known from it, by the masks of events.

    `bits` are the active states; `idle` is the move of events that enable nothing, once known.
    """

    __slots__ = ("_active", "bits", "idle", "is_kept")

    # Two rows are never equal, even if they know the same moves.
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, bits: int, is_kept: bool) -> None:
        self.bits = bits
        self.is_kept = is_kept
        self.idle: RowMove | None = None
        self._active: frozenset[State] | None = None

    @property
    def active(self) -> frozenset[State]:
        """The active states. A snapshot asks for them once a key."""
        if self._active is None:
            self._active = frozenset(numbers_in(self.bits))
        return self._active


class RowTable:
    """The rows of one machine; a row is worked out when an event first reaches it."""

    def __init__(
        self, machine: Machine, limits: MachineLimits, conditions: OutputConditions | None = None
    ) -> None:
        self.machine = machine
        self._conditions = conditions
        self._stepper = BitStepper(machine)
        self._switches: dict[tuple[str, str], Switch] = {
            (each.kind, each.label): each for each in machine.switches
        }
        self._rows_left, self._moves_left = limits.table_states, limits.table_moves
        self._marks_left = limits.table_marks
        self._bound = {place: state for b in machine.branches for place, _, state in b.places}
        self._rows: dict[int, Row] = {}
        self.first = self._row(self._stepper.first)
        self.first_timers = self._stepper.first_timers

    def move(self, row: Row, mask: int) -> RowMove:
        """The move of an event in a row; without atoms (0), the move after a transformer."""
        known = row.get(mask)
        if known is None:
            readers = self._stepper.readers(row.bits, mask)
            known = None if readers else row.idle
            if known is None:
                known = self._new_move(row, self._stepper.take(row.bits, readers))
                if not readers:
                    row.idle = known
            if row.is_kept and self._moves_left > 0:
                self._moves_left -= 1
                row[mask] = known
        return known

    def timeout_move(self, row: Row, due: Iterable[State]) -> RowMove:
        """The move that the timeouts which are due cause in a row."""
        return self._new_move(row, self._stepper.take(row.bits, self._stepper.due(due)))

    def switch(self, row: Row, kind: str, label: str) -> Row:
        """Where aborting or reviving a label leads."""
        switch = self._switches[kind, label]
        if not row.bits >> switch.requires & 1:
            return row
        return self._row(row.bits & ~bits_of(switch.clear) | bits_of(switch.target))

    def row_of(self, active: Iterable[State]) -> Row:
        """The row of a set of active states, as a snapshot holds it."""
        return self._row(bits_of(active))

    def _new_move(self, row: Row, taken: BitTaken) -> RowMove:
        effects = taken.effects
        if effects and self._conditions is not None:
            effects = tuple(each for each in effects if self._has_outputs(each, self._conditions))
        to = row if taken.active == row.bits else self._row(taken.active)
        binds = taken.binds
        for place in binds:
            if not taken.active >> self._bound[place] & 1:
                binds = self._places_read(binds, taken.active, effects)
                break
        return RowMove(to, binds, effects, taken.started, is_loop=to is row)

    def _places_read(
        self, binds: Iterable[int], active: int, effects: Iterable[Emit | Fired]
    ) -> tuple[int, ...]:
        """The places bound by an event that are read, by a firing or at a later event.

        An event that only resets a key binds places that no firing reads: it starts no key.
        """
        fired = {place for each in effects if isinstance(each, Fired) for place in each.places}
        return tuple(p for p in binds if p in fired or active >> self._bound[p] & 1)

    @staticmethod
    def _has_outputs(effect: Emit | Fired, conditions: OutputConditions) -> bool:
        return not isinstance(effect, Fired) or any(
            label_value(condition, effect.labels, lambda _: False) for condition in conditions
        )

    def _row(self, bits: int) -> Row:
        known = self._rows.get(bits)
        if known is None:
            size = bits.bit_count()
            known = Row(bits, is_kept=self._rows_left > 0 and self._marks_left >= size)
            if known.is_kept:
                self._rows_left -= 1
                self._marks_left -= size
                self._rows[bits] = known
        return known


class SharedTables:
    """Tables by the structure of their machines: rules with other names of ports share a table."""

    def __init__(self, limits: MachineLimits = DEFAULT_MACHINE_LIMITS) -> None:
        self.limits = limits
        self._known: dict[tuple[Machine, OutputConditions | None], RowTable] = {}

    def of(self, machine: Machine, conditions: OutputConditions | None = None) -> RowTable:
        """The rows of a machine.

        With `conditions`, firings without outputs are left out: they have no other effect.
        """
        shape = structure(machine)
        rows = self._known.get((shape, conditions))
        if rows is None:
            rows = self._known[shape, conditions] = RowTable(shape, self.limits, conditions)
        return rows


def structure(machine: Machine) -> Machine:
    """The machine without the names of its states, ports and predicates."""
    branches = tuple(
        Branch(b.root, b.labels, tuple((place, "", state) for place, _, state in b.places))
        for b in machine.branches
    )
    return replace(machine, names=("",) * len(machine.names), atoms=(), branches=branches)
