"""Rules of one shape, stepped together: thousands of them for a few operations on long integers.

In comes a group of rules whose machines have the same structure and whose statements are the same
but for the names of ports: they differ in what their ports ask for. A key of a group has, for each
row of the shared table, one integer with a bit for each rule that stands there; an event has, for
each move from a row, one integer of the rules that read it so. Their intersection moves at once.
A rule in the first row has no bit anywhere, so that a rule that is added needs no key to know it.

Bindings are shared too. A port stands for the last event that matches it in its stretch, and its
stretch goes on to the present: so if it is bound at all, it is bound to the last event that has
matched it under this key. That is noted once for each *letter*, which is what a port asks for.

Rules with a window, timers, statements before the first case, changes of labels, `bind first`,
values to be computed or outputs that others read stay on their own; `shape_of` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any

from ensue.engine.counts import Counts
from ensue.engine.outputs import Outputs
from ensue.engine.ports import key_text
from ensue.engine.step.emitting import compile_volley, recipe_of, values_of
from ensue.engine.step.filters import TabledFilter
from ensue.engine.step.firing import Noted
from ensue.engine.step.rows import Row
from ensue.engine.step.rules import KEYS_BEFORE_A_SWEEP, FastKey, Rule, whole_key
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.expressions import Expression, Literal
from ensue.lang.syntax import EventPort, FilterCorrelation, PushNew, PushPort
from ensue.machine.model import Emit, PortAtom
from ensue.machine.stepping import Fired

SMALLEST_GROUP = 16
"""From how many rules of one shape on it pays to step them together."""

Shape = tuple[object, ...]
Volley = tuple[int, Callable[..., None], list[Any]]
"""How many events a firing makes, the routine, and what it has to know of each rule, by bits."""

Letter = tuple[str, str | None, Expression | None]
"""What a port asks for: a type, a source, a predicate."""


def shape_of(rule: Rule, types: TypeSystem) -> Shape | None:
    """The same for rules that can be stepped together; None for one that stays on its own."""
    correlation = rule.correlation
    if (
        not isinstance(correlation, FilterCorrelation)
        or rule.form != "table"
        or rule.rows is None
        or rule.machine is None
        or not rule.lets_keys_go
        or correlation.clauses.bind == "first"
    ):
        return None
    names = set(rule.ports.key_names.values())
    atoms = atoms_of(rule)
    statements = [s for case in correlation.cases for s in case.statements]
    if len(names) != 1 or not all(isinstance(each, PushPort | PushNew) for each in statements):
        return None
    said: list[object] = []
    for case in correlation.cases:
        said.append(case.condition)
        for statement in case.statements:
            if isinstance(statement, PushPort):
                said.append(("on", atoms.get(statement.port)))
            elif isinstance(statement, PushNew):
                said.append(statement.type)
                for value in values_of(statement, correlation, types):
                    if value.port is None and not isinstance(value.expression, Literal):
                        return None
                    # As text, for in Python `1`, `1.0` and `True` would be one constant.
                    fixed = repr(value.constant)
                    port = None if value.port is None else atoms.get(value.port)
                    said.append((value.name, port, value.port is None, value.attribute, fixed))
    places = tuple(
        (place, atoms[port]) for branch in rule.machine.branches for place, port, _ in branch.places
    )
    return (id(rule.rows), *names, *said, places)


def atoms_of(rule: Rule) -> dict[str, int]:
    """The number of each port among the atoms of its machine."""
    atoms = rule.machine.atoms if rule.machine else ()
    return {atom.name: number for number, atom in enumerate(atoms) if isinstance(atom, PortAtom)}


class KeyState:
    """A key of a group: who is where, the latest event of each letter, and what was put out now.

    `made` has, for each trigger at `time`, masks of those who put something out, and how much.
    """

    __slots__ = ("last", "made", "rows", "text", "time")

    def __init__(self, key: FastKey, letters: int) -> None:
        self.rows: dict[Row, int] = {}
        self.last: list[Noted | None] = [None] * letters
        self.text = key_text(whole_key(key))
        self.time: int | None = None
        self.made: dict[str, list[tuple[int, int]]] = {}

    def made_before(self, time: int, trigger: str) -> dict[int, int] | None:
        """How many outputs rules have at this trigger already, by their bits."""
        if self.time != time:
            self.time = time
            self.made = {}
            return None
        if trigger not in self.made:
            return None
        found: dict[int, int] = {}
        for mask, number in self.made[trigger]:
            for bit in bits_of(mask):
                found[bit] = found.get(bit, 0) + number
        return found


Effects = tuple[Emit | Fired, ...]
Move = tuple[int, Row, Effects]
"""Who moves, where to, and what follows from it."""


class GroupReading:
    """What the events of a type with certain tests are to a group.

    `wanted` has the rules that match at all; `by_atoms` those that read each set of atoms.
    """

    __slots__ = ("by_atoms", "group", "key", "letters", "moves", "wanted")

    def __init__(
        self,
        group: Group,
        key: int,
        wanted: int,
        by_atoms: dict[int, int],
        letters: tuple[int, ...],
    ) -> None:
        self.group = group
        self.key = key
        self.wanted = wanted
        self.by_atoms = by_atoms
        self.letters = letters
        self.moves: dict[Row, tuple[Move, ...]] = {}

    def moves_from(self, row: Row) -> tuple[Move, ...]:
        """Where the event leads from a row; those who only stay are left out."""
        found: dict[tuple[Row, Effects], int] = {}
        for atoms, rules in self.by_atoms.items():
            step = self.group.rows.step(row, atoms)
            if atoms not in row:
                self.group.has_outgrown = True
            if step.effects or step.to is not row:
                outcome = step.to, step.effects
                found[outcome] = found.get(outcome, 0) | rules
        moves = tuple((rules, to, effects) for (to, effects), rules in found.items())
        self.moves[row] = moves
        return moves


class Group:
    """Rules of one shape. The bits of rules that come first in the library are the highest.

    `room` is the number of the next bit; it falls, and masks are shifted up when it is used up.
    `is_in_order` says that it is still so. `has_outgrown` says that the table has outgrown its
    limits: then the rules had better go on by themselves.
    """

    def __init__(self, first: Rule, types: TypeSystem, numbers: Iterator[int]) -> None:
        assert first.rows is not None
        self.rows = first.rows
        self.key_names = next(iter(first.ports.key_names.values()))
        self.keys: dict[FastKey, KeyState] = {}
        self.members: dict[int, Rule] = {}
        self.room = 0
        self.has_outgrown = False
        self.is_in_order = True
        self.numbers = numbers
        self._types = types
        self._bits: list[int] = []
        self._letters: dict[Letter, int] = {}
        self._volleys: dict[Effects, list[Volley]] = {}
        self._sweep_at = KEYS_BEFORE_A_SWEEP

    # --- who belongs to it ----------------------------------------------------------------------

    def take(self, rules: Sequence[Rule], staying: Container[str], types: TypeSystem) -> None:
        """Go on with these rules, in this order; those that stay keep where they stand."""
        known = {rule.name: bit for bit, rule in self.members.items() if rule.name in staying}
        stay = {known[rule.name]: rule for rule in rules if rule.name in known}
        gone = [bit for bit in self.members if bit not in stay]
        new = [rule for rule in rules if rule.name not in known]
        self._types = types
        self.members = stay
        if gone:
            self._forget(gone)
        if len(new) > self.room:
            self._make_room(2 * len(rules) + len(new))
        for rule in new:
            self.members[self.room] = rule
            self.room -= 1
        self.members = dict(sorted(self.members.items(), reverse=True))
        self._bits = [0, *(1 << number for number in range(max(self.members)))]
        self._volleys = {}
        places = [rule.place for rule in self.members.values()]
        self.is_in_order = places == sorted(places)
        for rule in self.members.values():
            for port in rule.correlation.ports:
                assert isinstance(port, EventPort)
                self._letters.setdefault(letter_of(port), len(self._letters))
        for state in self.keys.values():
            state.last += [None] * (len(self._letters) - len(state.last))
        for bit, rule in self.members.items():
            rule.group = self
            if rule.instances:
                self._absorb(rule, self._bits[bit])

    def leave(self) -> None:
        """Let every rule go on by itself."""
        for rule in self.members.values():
            rule.instances = dict(self.instances_of(rule))
            rule.group = None

    def _forget(self, gone: Sequence[int]) -> None:
        kept = ~sum(1 << (bit - 1) for bit in gone)
        for state in self.keys.values():
            state.rows = {row: left for row, mask in state.rows.items() if (left := mask & kept)}
            state.made = {
                trigger: [(mask & kept, number) for mask, number in made]
                for trigger, made in state.made.items()
            }

    def _make_room(self, more: int) -> None:
        """Shift all bits up."""
        self.members = {bit + more: rule for bit, rule in self.members.items()}
        self.room += more
        for state in self.keys.values():
            state.rows = {row: mask << more for row, mask in state.rows.items()}
            state.made = {
                trigger: [(mask << more, number) for mask, number in made]
                for trigger, made in state.made.items()
            }

    def _absorb(self, rule: Rule, bit: int) -> None:
        """Take over the instances that a rule had by itself."""
        letters = self.letters_by_atom(rule)
        atoms = atoms_of(rule)
        for key, instance in rule.instances.items():
            assert isinstance(instance, TabledFilter)
            state = self.keys.get(key)
            if state is None:
                state = self._begin(key)
            if not instance.row.is_kept:
                self.has_outgrown = True
            if instance.row is not self.rows.first:
                state.rows[instance.row] = state.rows.get(instance.row, 0) | bit
            for place, noted in enumerate(instance.places):
                if noted is not None and instance.facts.bound_states[place] in instance.row.active:
                    letter = letters[atoms[instance.facts.ports[place]]]
                    known = state.last[letter]
                    # A snapshot keeps only the id of an event of which a rule wants no more.
                    if known is None or (known[0], _is_whole(known)) < (noted[0], _is_whole(noted)):
                        state.last[letter] = noted
            outputs = instance.outputs
            if outputs.time is not None and (state.time is None or state.time <= outputs.time):
                if state.time != outputs.time:
                    state.time, state.made = outputs.time, {}
                for trigger, number in outputs.made.items():
                    state.made.setdefault(trigger, []).append((bit, number))
        rule.instances.clear()

    def letters_by_atom(self, rule: Rule) -> dict[int, int]:
        atoms = atoms_of(rule)
        return {
            atoms[port.name]: self._letters[letter_of(port)]
            for port in rule.correlation.ports
            if isinstance(port, EventPort) and port.name in atoms
        }

    def letter(self, port: EventPort) -> int:
        return self._letters[letter_of(port)]

    def bit(self, rule: Rule) -> int:
        """The mask of one rule."""
        (number,) = [number for number, each in self.members.items() if each.name == rule.name]
        return self._bits[number]

    def instances_of(self, rule: Rule) -> dict[FastKey, TabledFilter]:
        """The keys of one rule, as it would hold them by itself: for snapshots, and to leave."""
        bit = self.bit(rule)
        letters, atoms = self.letters_by_atom(rule), atoms_of(rule)
        found: dict[FastKey, TabledFilter] = {}
        for key, state in self.keys.items():
            row = next((row for row, mask in state.rows.items() if mask & bit), self.rows.first)
            counted = {
                trigger: sum(number for mask, number in made if mask & bit)
                for trigger, made in state.made.items()
            }
            made = {trigger: number for trigger, number in counted.items() if number}
            if row is self.rows.first and not made:
                continue
            outputs = Outputs(rule.name, whole_key(key), bool(self.key_names), self._types)
            if made:
                outputs.time, outputs.made = state.time, made
            instance = rule.starter(0, (), outputs, 0)
            assert isinstance(instance, TabledFilter)
            instance.row = row
            for place, bound in instance.facts.bound_states.items():
                if bound in row.active:
                    letter = letters[atoms[instance.facts.ports[place]]]
                    instance.places[place] = state.last[letter]
            found[key] = instance
        return found

    # --- reading --------------------------------------------------------------------------------

    def read(
        self,
        reading: GroupReading,
        key: FastKey | None,
        event: Event,
        counts: Counts,
        made: list[Event],
    ) -> int:
        """Let all rules read an event; says how many times outputs were made, each in order."""
        if key is None:
            for bit in bits_of(reading.wanted):
                counts.without_key[self.members[bit].name] += 1
            return 0
        moves = reading.moves
        first = self.rows.first
        state = self.keys.get(key)
        if state is None:
            if not (moves[first] if first in moves else reading.moves_from(first)):
                return 0
            if len(self.keys) >= self._sweep_at:
                self.sweep(event.time)
            state = self._begin(key)
        noted = (next(self.numbers), event)
        last = state.last
        for letter in reading.letters:
            last[letter] = noted
        rows = state.rows
        changes: list[tuple[Row, int, Row, Effects]] = []
        busy = 0
        for row, mask in rows.items():
            busy |= mask
            for rules, to, effects in moves[row] if row in moves else reading.moves_from(row):
                moved = mask & rules
                if moved:
                    changes.append((row, moved, to, effects))
        for rules, to, effects in moves[first] if first in moves else reading.moves_from(first):
            moved = rules & ~busy
            if moved:
                changes.append((first, moved, to, effects))
        times = 0
        before: dict[int, int] | None = None
        for row, moved, to, effects in changes:
            if to is not row:
                if row is not first:
                    left = rows[row] ^ moved
                    if left:
                        rows[row] = left
                    else:
                        del rows[row]
                if to is not first:
                    rows[to] = rows.get(to, 0) | moved
                    if not to.is_kept:
                        self.has_outgrown = True
            if effects:
                if not times:
                    before = state.made_before(event.time, event.id)
                times += self._fire(effects, moved, state, event, before, made)
        return times

    def _fire(
        self,
        effects: Effects,
        fired: int,
        state: KeyState,
        event: Event,
        before: dict[int, int] | None,
        made: list[Event],
    ) -> int:
        volleys = self._volleys.get(effects)
        if volleys is None:
            volleys = self._volleys[effects] = [self._volley(each) for each in effects]
        noted = state.made.setdefault(event.id, [])
        for count, volley, members in volleys:
            chosen = _chosen(fired, members)
            volley(made, chosen, state.last, state.text, event.time, event.id, before)
            noted.append((fired, count))
            if len(volleys) > 1:
                before = {bit: (before or {}).get(bit, 0) + count for bit in bits_of(fired)}
        return len(volleys)

    def _volley(self, effect: Emit | Fired) -> Volley:
        example = next(iter(self.members.values()))
        correlation, facts = example.correlation, example.facts
        assert isinstance(correlation, FilterCorrelation)
        assert facts is not None
        assert isinstance(effect, Fired)
        recipe = recipe_of(correlation, self._types, effect, facts.ports)
        assert recipe is not None, "a rule with such a firing is in no group"
        atoms = atoms_of(example)
        bound = [atoms[port] for port in recipe.ports]
        members: list[Any] = [None] * len(self._bits)
        for bit, rule in self.members.items():
            letters = self.letters_by_atom(rule)
            known = (letters[atom] for atom in bound)
            members[bit] = (bit, rule.name, f"ensue/{rule.name}", *known)
        return recipe.count, compile_volley(recipe), members

    # --- keys -----------------------------------------------------------------------------------

    def _begin(self, key: FastKey) -> KeyState:
        state = self.keys[key] = KeyState(key, len(self._letters))
        return state

    def sweep(self, now: int) -> None:
        """Let go of the keys under which every rule stands as before it started."""
        gone = [
            key
            for key, state in self.keys.items()
            if not state.rows and (state.time is None or state.time < now)
        ]
        for key in gone:
            del self.keys[key]
        self._sweep_at = max(KEYS_BEFORE_A_SWEEP, 2 * len(self.keys))


def _is_whole(noted: Noted) -> bool:
    return isinstance(noted[1], Event) and noted[1].type != ""


_ZEROS = bytes(0 if each == ord("0") else 1 for each in range(256))


def _chosen(fired: int, members: Sequence[Any]) -> Iterable[Any]:
    """The members whose bits are set, the highest first."""
    if fired.bit_count() * 8 < len(members):
        return [members[bit] for bit in bits_of(fired)]
    digits = f"{fired:0{len(members) - 1}b}".encode().translate(_ZEROS)
    return compress(reversed(members), digits)


def letter_of(port: EventPort) -> Letter:
    return port.type, port.source, port.where


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, counted from 1, the highest first."""
    while mask:
        bit = mask.bit_length()
        yield bit
        mask ^= 1 << (bit - 1)


__all__ = ["SMALLEST_GROUP", "Group", "GroupReading", "KeyState", "bits_of", "shape_of"]
