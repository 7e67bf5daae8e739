"""Rules that read by one key and are stepped together: who they are, and what they share.

In come rules with their shapes (`cell_shapes`, `clocked_shapes`); each has a bit, so that a mask
says who wants an event or fires by it. How the states of its rules are held under a key, and how
they move, is what kinds of groups differ in: `cell_groups` has rules without timers, and
`clocked_groups` those that have timers. What the rules that fire put out is described here, for
`volleys`.

Bindings are shared. A port stands for the last event that matches it in its stretch, and its
stretch goes on to the present: so if it is bound at all, it is bound to the last event that has
matched it under this key. That is noted once for each *letter*, which is what a port asks for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

from ensue.engine.counts import Counts
from ensue.engine.outputs import Outputs
from ensue.engine.step.boards import Board, KeyState
from ensue.engine.step.ecl import EclRunner
from ensue.engine.step.emitting import Recipe, compile_volley
from ensue.engine.step.filters import TabledFilter, WindowedFilter
from ensue.engine.step.firing import Noted
from ensue.engine.step.readings import GroupWant
from ensue.engine.step.rules import FastKey, Rule, whole_key
from ensue.engine.step.shapes import Shape, atoms_of, letter_of
from ensue.engine.step.volleys import Fires, Gathered, Own, What, bits_of
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import EventPort

Volley = tuple[int, Callable[..., None], list[Any]]
"""How many events a firing makes, the routine, and what it has to know of each rule, by bits: where
it stands in the library, its name, its source, and the letters of its bound ports."""

Runner = TabledFilter | WindowedFilter | EclRunner


class Group(ABC):
    """Rules that read by one key. The bits of rules that come first in the library are the highest.

    `room` is the number of the next bit; it falls, and masks are shifted up when it is used up.
    `is_in_order` says that it is still so.
    """

    is_in_cells = False
    has_alarms = False

    def __init__(self, board: Board, types: TypeSystem, numbers: Iterator[int]) -> None:
        self.board = board
        self.at = board.join(self)
        self.members: dict[int, Rule] = {}
        self.room = 0
        self.is_in_order = True
        self.numbers = numbers
        self._types = types
        self._bits: list[int] = []
        self._numbers_by_name: dict[str, int] = {}
        self._kinds: dict[Shape, int] = {}
        self._kinds_by_name: dict[str, int] = {}
        self._volleys: dict[What, Volley | None] = {}

    # --- who belongs to it ----------------------------------------------------------------------

    @abstractmethod
    def make_room_for(self, shape: Shape, first: Rule) -> None:
        """Be ready for rules of a shape."""

    def take(self, rules: Mapping[Rule, Shape], staying: Container[str], types: TypeSystem) -> None:
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
            # Long integers cost by their length: there is no room to spare before rules come late.
            self._make_room(len(new) + (2 * len(rules) if self.members else 0))
        for rule in new:
            self.members[self.room] = rule
            self.room -= 1
        self.members = dict(sorted(self.members.items(), reverse=True))
        self._numbers_by_name = {rule.name: bit for bit, rule in self.members.items()}
        self._kinds_by_name = {rule.name: self._kinds[shape] for rule, shape in rules.items()}
        self._bits = [0, *(1 << number for number in range(max(self.members)))]
        self._volleys = {}
        places = [rule.place for rule in self.members.values()]
        self.is_in_order = places == sorted(places)
        known_letters = self.board.letters
        for rule in self.members.values():
            for port in rule.correlation.ports:
                if isinstance(port, EventPort):
                    known_letters.setdefault(letter_of(port), len(known_letters))
        self._look_at_members()
        self.board.settle()
        for bit, rule in self.members.items():
            rule.group = self
            if rule.instances:
                self._absorb(rule, bit)

    def _forget(self, gone: Sequence[int]) -> None:
        """Rules that are no longer there, by their numbers."""
        kept = ~sum(1 << (bit - 1) for bit in gone)
        for _, state, held in self.board.held_by(self):
            if held is not None:
                self._forget_held(held, gone)
            for made in state.made.values():
                made[:] = [
                    (at, mask & kept if at == self.at else mask, count) for at, mask, count in made
                ]

    @abstractmethod
    def _forget_held(self, held: Any, gone: Sequence[int]) -> None: ...

    def _make_room(self, more: int) -> None:
        """Shift all bits up."""
        self.members = {bit + more: rule for bit, rule in self.members.items()}
        self.room += more
        for _, state, held in self.board.held_by(self):
            if held is not None:
                self._shift_held(held, more)
            for made in state.made.values():
                made[:] = [
                    (at, mask << more if at == self.at else mask, count) for at, mask, count in made
                ]

    @abstractmethod
    def _shift_held(self, held: Any, more: int) -> None: ...

    @abstractmethod
    def _look_at_members(self) -> None:
        """All rules have their numbers, and their ports have letters."""

    def _absorb(self, rule: Rule, number: int) -> None:
        """Take over the instances that a rule had by itself."""
        letters = self.letters_by_atom(rule)
        atoms = atoms_of(rule)
        for key, instance in rule.instances.items():
            assert isinstance(instance, TabledFilter | WindowedFilter | EclRunner)
            state = self.board.keys.get(key) or self.board.begin(key)
            held = state.held[self.at]
            if held is None:
                held = state.held[self.at] = self.new_list(state)
            self._place(state, held, instance, number)
            for port, noted in _bound_in(instance):
                letter = letters.get(atoms[port])
                if letter is None:
                    continue  # of a timer, which is bound to no event
                known = state.last[letter]
                # A snapshot keeps only the id of an event of which a rule wants no more.
                if known is None or (known[0], _is_whole(known)) < (noted[0], _is_whole(noted)):
                    state.last[letter] = noted
            outputs = instance.outputs
            if outputs.time is not None:
                self._note_made(state, held, number, outputs.time, outputs.made)
        rule.instances.clear()

    def _note_made(
        self,
        state: KeyState,
        held: Any,  # noqa: ARG002
        number: int,
        time: int,
        made: Mapping[str, int],
    ) -> None:
        """Note how much a rule has put out at a time, by trigger."""
        if state.time is None or state.time <= time:
            if state.time != time:
                state.time, state.made = time, {}
            for trigger, count in made.items():
                state.made.setdefault(trigger, []).append((self.at, self._bits[number], count))

    def _made(
        self,
        state: KeyState,
        held: Any,  # noqa: ARG002
        number: int,
    ) -> tuple[int | None, dict[str, int]]:
        """When a rule has last put something out, as far as that counts, and how much."""
        made = state.made_by(self.at, self._bits[number]) if state.made else {}
        return (state.time, made) if made else (None, made)

    @abstractmethod
    def _place(self, state: KeyState, held: Any, instance: Runner, number: int) -> None:
        """Put a rule to where its instance stands."""

    def letters_by_atom(self, rule: Rule) -> dict[int, int]:
        atoms = atoms_of(rule)
        return {
            atoms[port.name]: self.board.letters[letter_of(port)]
            for port in rule.correlation.ports
            if isinstance(port, EventPort) and port.name in atoms
        }

    def letter(self, port: EventPort) -> int:
        return self.board.letters[letter_of(port)]

    def kind_of(self, rule: Rule) -> int:
        """The number of the shape that a rule has."""
        return self._kinds_by_name[rule.name]

    def number(self, rule: Rule) -> int:
        """The number of the bit of one rule."""
        return self._numbers_by_name[rule.name]

    def bit(self, rule: Rule) -> int:
        """The mask of one rule."""
        return self._bits[self._numbers_by_name[rule.name]]

    def instances_of(self, rule: Rule) -> dict[FastKey, Runner]:
        """The keys of one rule, as it would hold them by itself: for snapshots, and to leave."""
        number = self._numbers_by_name[rule.name]
        letters, atoms = self.letters_by_atom(rule), atoms_of(rule)
        found: dict[FastKey, Runner] = {}
        for key, state, held in self.board.held_by(self):
            if held is None:
                continue
            time, made = self._made(state, held, number)
            if not made and not self._is_under_way(held, number):
                continue
            outputs = Outputs(rule.name, whole_key(key), bool(self.board.key_names), self._types)
            if made:
                outputs.time, outputs.made = time, made
            instance = rule.starter(0, rule.ports.timers, outputs, 0)
            assert isinstance(instance, TabledFilter | WindowedFilter | EclRunner)
            self._stand(state, held, instance, number)
            if not isinstance(instance, EclRunner):
                for place, bound in instance.facts.bound_states.items():
                    letter = letters.get(atoms[instance.facts.ports[place]])
                    if letter is not None and instance.is_active(bound):
                        instance.places[place] = state.last[letter]
            found[key] = instance
        return found

    def started_of(self, rule: Rule) -> int:
        """How many instances a rule has had, where that counts."""
        return rule.started

    @abstractmethod
    def _is_under_way(self, held: Any, number: int) -> bool:
        """Whether a rule may have left its start."""

    @abstractmethod
    def _stand(self, state: KeyState, held: Any, instance: Runner, number: int) -> None:
        """Put an instance where a rule stands."""

    # --- reading --------------------------------------------------------------------------------

    @abstractmethod
    def want(self, key: int) -> GroupWant:
        """For what rules want of a type to be added to; `key` says which key of it they read by."""

    @abstractmethod
    def new_list(self, state: KeyState) -> Any:
        """What is held under a key of rules that all stand at their start."""

    def count_without_key(self, wanted: int, counts: Counts) -> None:
        for bit in bits_of(wanted):
            counts.without_key[self.members[bit].name] += 1

    @abstractmethod
    def is_idle(self, state: KeyState, held: Any, now: int) -> bool:
        """Whether every rule stands as before it started."""

    def chosen(self, who: int, members: Sequence[Any]) -> list[Any]:
        """The members whose bits are set, in the order of the library."""
        if who.bit_count() * 8 < len(members):
            chosen, bits = [], self._bits
            while who:
                number = who.bit_length()
                chosen.append(members[number])
                who ^= bits[number]
        else:
            digits = f"{who:0{len(members) - 1}b}".encode().translate(_ZEROS)
            chosen = list(compress(reversed(members), digits))
        if not self.is_in_order:
            chosen.sort()
        return chosen

    @abstractmethod
    def fires(self, found: Any) -> Sequence[Fires]:
        """Who fires, and how, of what was said of who has fired."""

    @abstractmethod
    def gather(self, found: Any, by_routine: Gathered, own: Own) -> bool | None:
        """Add those that fire to the others; says whether they are in the order of the library.

        None where a rule fires more than once, so that what it puts out has to be counted.
        """

    def volley(self, what: What) -> Volley | None:
        """How rules put out what they do when they fire so; None where nothing follows."""
        return self._volleys[what] if what in self._volleys else self._new_volley(what)

    def _new_volley(self, what: What) -> Volley | None:
        kind = what[0]
        alike = {bit: each for bit, each in self.members.items() if self.kind_of(each) == kind}
        example = next(iter(alike.values()))
        recipe, bound = self._recipe(what, example)
        volley: Volley | None = None
        if recipe.count:
            members: list[Any] = [None] * len(self._bits)
            for bit, rule in alike.items():
                letters = self.letters_by_atom(rule)
                known = (letters[atom] for atom in bound)
                members[bit] = (rule.place, rule.name, f"ensue/{rule.name}", *known)
            routine = self.board.volleys.get(recipe.kind)
            if routine is None:
                routine = self.board.volleys[recipe.kind] = compile_volley(recipe)
            volley = recipe.count, routine, members
        self._volleys[what] = volley
        return volley

    @abstractmethod
    def _recipe(self, what: What, example: Rule) -> tuple[Recipe, list[int]]:
        """What follows when rules fire so, of which this is one; and the atoms of bound ports."""


def _bound_in(instance: Runner) -> Iterator[tuple[str, Noted]]:
    """What is bound to ports in an instance."""
    if isinstance(instance, EclRunner):
        return
    facts = instance.facts
    for place, noted in enumerate(instance.places[: facts.place_count]):
        if noted is not None and instance.is_active(facts.bound_states[place]):
            yield facts.ports[place], noted


def _is_whole(noted: Noted) -> bool:
    return isinstance(noted[1], Event) and noted[1].type != ""


_ZEROS = bytes(0 if each == ord("0") else 1 for each in range(256))
