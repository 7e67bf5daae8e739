"""Rules of a few shapes, stepped together: thousands of them for a few operations on long integers.

In come rules with their shapes (`shapes`): rules of one shape differ in what their ports ask for.
Under a key (`boards`) a group has one integer for each state of their machines, with a bit for each
rule that is in it; an event has one integer for each step, of the rules that may take it
(`readings`). A function that is written for the shapes takes all rules through the event at once
(`sliced`), and what the rules that fire put out is described here, for `volleys`. A rule that
stands at its start has no bit anywhere, so that a rule that is added needs no key to know it.

Bindings are shared too. A port stands for the last event that matches it in its stretch, and its
stretch goes on to the present: so if it is bound at all, it is bound to the last event that has
matched it under this key. That is noted once for each *letter*, which is what a port asks for.

Rules with a window are in groups of their own kind: `candidates`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

from ensue.engine.counts import Counts
from ensue.engine.outputs import Outputs
from ensue.engine.step.boards import Board, KeyState
from ensue.engine.step.emitting import compile_volley, recipe_of
from ensue.engine.step.filters import TabledFilter, WindowedFilter
from ensue.engine.step.firing import Noted
from ensue.engine.step.rules import FastKey, Rule, whole_key
from ensue.engine.step.shapes import Shape, atoms_of, letter_of, machine_of
from ensue.engine.step.sliced import Fires, Sliced, Structure, What, bits_of
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import EventPort, FilterCorrelation

Volley = tuple[int, Callable[..., None], list[Any]]
"""How many events a firing makes, the routine, and what it has to know of each rule, by bits: where
it stands in the library, its name, its source, and the letters of its bound ports."""

Runner = TabledFilter | WindowedFilter


class Group:
    """Rules that read by one key. The bits of rules that come first in the library are the highest.

    `room` is the number of the next bit; it falls, and masks are shifted up when it is used up.
    `is_in_order` says that it is still so.
    """

    is_timed = False
    longest = 0
    """The longest window of its rules."""

    def __init__(self, board: Board, types: TypeSystem, numbers: Iterator[int]) -> None:
        self.sliced = Sliced(self.is_timed)
        self.has_branches = False
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

    def make_room_for(self, shape: Shape, first: Rule) -> None:
        """Be ready for rules of a shape."""
        if shape not in self._kinds:
            machine = machine_of(first)
            assert machine is not None, "a rule without a machine has no shape"
            self._kinds[shape] = self.sliced.add(machine)
            self.has_branches = self.has_branches or len(machine.branches) > 1
            for _, _, held in self.board.held_by(self):
                if held is not None:
                    held += [0] * (self.sliced.size - len(held))

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
            self._welcome(self.room)
            self.room -= 1
        self.members = dict(sorted(self.members.items(), reverse=True))
        self._numbers_by_name = {rule.name: bit for bit, rule in self.members.items()}
        self._kinds_by_name = {rule.name: self._kinds[shape] for rule, shape in rules.items()}
        self._bits = [0, *(1 << number for number in range(max(self.members)))]
        self.sliced.masks = [0] * len(self.sliced.structures)
        for bit, rule in self.members.items():
            self.sliced.masks[self.kind_of(rule)] |= self._bits[bit]
        self._volleys = {}
        places = [rule.place for rule in self.members.values()]
        self.is_in_order = places == sorted(places)
        for rule in self.members.values():
            for port in rule.correlation.ports:
                assert isinstance(port, EventPort)
                known_letters = self.board.letters
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
                held[:] = [mask & kept for mask in held]
            for made in state.made.values():
                made[:] = [
                    (at, mask & kept if at == self.at else mask, count) for at, mask, count in made
                ]

    def _make_room(self, more: int) -> None:
        """Shift all bits up."""
        self.members = {bit + more: rule for bit, rule in self.members.items()}
        self.room += more
        for _, state, held in self.board.held_by(self):
            if held is not None:
                held[:] = [mask << more for mask in held]
            for made in state.made.values():
                made[:] = [
                    (at, mask << more if at == self.at else mask, count) for at, mask, count in made
                ]

    def _welcome(self, number: int) -> None:
        """A new rule has this number."""

    def _look_at_members(self) -> None:
        """All rules have their numbers, and their ports have letters."""

    def _absorb(self, rule: Rule, number: int) -> None:
        """Take over the instances that a rule had by itself."""
        letters = self.letters_by_atom(rule)
        atoms = atoms_of(rule)
        bit = self._bits[number]
        for key, instance in rule.instances.items():
            assert isinstance(instance, TabledFilter | WindowedFilter)
            state = self.board.keys.get(key) or self.board.begin(key)
            held = state.held[self.at]
            if held is None:
                held = state.held[self.at] = self.new_list()
            self._place(state, held, instance, number)
            for place, noted in enumerate(instance.places[: instance.facts.place_count]):
                if noted is not None and instance.is_active(instance.facts.bound_states[place]):
                    letter = letters[atoms[instance.facts.ports[place]]]
                    known = state.last[letter]
                    # A snapshot keeps only the id of an event of which a rule wants no more.
                    if known is None or (known[0], _is_whole(known)) < (noted[0], _is_whole(noted)):
                        state.last[letter] = noted
            outputs = instance.outputs
            if outputs.time is not None and (state.time is None or state.time <= outputs.time):
                if state.time != outputs.time:
                    state.time, state.made = outputs.time, {}
                for trigger, count in outputs.made.items():
                    state.made.setdefault(trigger, []).append((self.at, bit, count))
        rule.instances.clear()

    def _place(self, state: KeyState, held: list[int], instance: Runner, number: int) -> None:  # noqa: ARG002
        """Set the bits of a rule to where its instance stands."""
        assert isinstance(instance, TabledFilter)
        for slot in self._structure(number).slots_of(instance.row.bits):
            held[slot] |= self._bits[number]

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
        """The number of the structure that a rule has."""
        return self._kinds_by_name[rule.name]

    def _structure(self, number: int) -> Structure:
        return self.sliced.structures[self.kind_of(self.members[number])]

    def bit(self, rule: Rule) -> int:
        """The mask of one rule."""
        return self._bits[self._numbers_by_name[rule.name]]

    def instances_of(self, rule: Rule) -> dict[FastKey, Runner]:
        """The keys of one rule, as it would hold them by itself: for snapshots, and to leave."""
        number = self._numbers_by_name[rule.name]
        bit = self._bits[number]
        letters, atoms = self.letters_by_atom(rule), atoms_of(rule)
        found: dict[FastKey, Runner] = {}
        for key, state, held in self.board.held_by(self):
            if held is None:
                continue
            made = state.made_by(self.at, bit) if state.made else {}
            if not made and not any(mask & bit for mask in held):
                continue
            outputs = Outputs(rule.name, whole_key(key), bool(self.board.key_names), self._types)
            if made:
                outputs.time, outputs.made = state.time, made
            instance = rule.starter(0, (), outputs, 0)
            assert isinstance(instance, TabledFilter | WindowedFilter)
            self._stand(state, held, instance, number)
            for place, bound in instance.facts.bound_states.items():
                if instance.is_active(bound):
                    letter = letters[atoms[instance.facts.ports[place]]]
                    instance.places[place] = state.last[letter]
            found[key] = instance
        return found

    def _stand(self, state: KeyState, held: list[int], instance: Runner, number: int) -> None:  # noqa: ARG002
        """Put an instance where a rule stands."""
        assert isinstance(instance, TabledFilter)
        active = self._structure(number).active(held, self._bits[number])
        instance.row = instance.rows.row_of(active)

    # --- reading --------------------------------------------------------------------------------

    def new_list(self) -> list[int]:
        """What is held of rules that all stand at their start."""
        return [0] * self.sliced.size

    def count_without_key(self, wanted: int, counts: Counts) -> None:
        for bit in bits_of(wanted):
            counts.without_key[self.members[bit].name] += 1

    def judged(
        self,
        fired: Any,
        state: KeyState,  # noqa: ARG002
        held: list[int],  # noqa: ARG002
        number: int,  # noqa: ARG002
        now: int,  # noqa: ARG002
    ) -> Sequence[Fires]:
        """Who fires, and how, when `take` has given something back."""
        found: Sequence[Fires] = fired
        return found

    def bring_all(self, state: KeyState, number: int) -> None:
        """Be ready for the moments of a key to be forgotten."""

    def is_idle(self, state: KeyState, held: list[int], now: int) -> bool:  # noqa: ARG002
        """Whether every rule stands as before it started."""
        return not any(held)

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

    def volley(self, what: What) -> Volley | None:
        """How rules put out what they do when a branch fires so; None where nothing follows."""
        return self._volleys[what] if what in self._volleys else self._new_volley(what)

    def _new_volley(self, what: What) -> Volley | None:
        kind, branch, counting = what
        alike = {bit: each for bit, each in self.members.items() if self.kind_of(each) == kind}
        example = next(iter(alike.values()))
        correlation, facts = example.correlation, example.facts
        assert isinstance(correlation, FilterCorrelation)
        assert facts is not None
        recipe = recipe_of(
            correlation,
            self._types,
            self.sliced.structures[kind].fired(branch, counting),
            facts.ports,
        )
        assert recipe is not None, "a rule with such a firing is in no group"
        volley: Volley | None = None
        if recipe.count:
            atoms = atoms_of(example)
            bound = [atoms[port] for port in recipe.ports]
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


def _is_whole(noted: Noted) -> bool:
    return isinstance(noted[1], Event) and noted[1].type != ""


_ZEROS = bytes(0 if each == ord("0") else 1 for each in range(256))
