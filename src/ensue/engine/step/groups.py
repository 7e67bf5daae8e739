"""Rules of one shape, stepped together: thousands of them for a few operations on long integers.

In comes a group of rules of one shape (`shapes`): they differ in what their ports ask for. A key of
a group has one integer for each state of their machine, with a bit for each rule that is in it; an
event has one integer for each atom, of the rules that read it so (`readings`). A function that is
written for the shape takes all rules through the event at once (`sliced`). A rule that stands at
its start has no bit anywhere, so that a rule that is added needs no key to know it.

Bindings are shared too. A port stands for the last event that matches it in its stretch, and its
stretch goes on to the present: so if it is bound at all, it is bound to the last event that has
matched it under this key. That is noted once for each *letter*, which is what a port asks for.

Rules with a window are in groups of their own kind: `candidates`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any

from ensue.engine.counts import Counts
from ensue.engine.outputs import Outputs
from ensue.engine.ports import key_text
from ensue.engine.step.emitting import compile_volley, recipe_of
from ensue.engine.step.filters import TabledFilter, WindowedFilter
from ensue.engine.step.firing import Noted
from ensue.engine.step.readings import GroupReading
from ensue.engine.step.rules import KEYS_BEFORE_A_SWEEP, FastKey, Rule, whole_key
from ensue.engine.step.shapes import Letter, atoms_of, letter_of, machine_of
from ensue.engine.step.sliced import Fires, Sliced
from ensue.events.event import Event
from ensue.events.types import TypeSystem
from ensue.lang.syntax import EventPort, FilterCorrelation

Volley = tuple[int, Callable[..., None], list[Any]]
"""How many events a firing makes, the routine, and what it has to know of each rule, by bits."""

Runner = TabledFilter | WindowedFilter


class KeyState:
    """A key of a group: who is where, the latest event of each letter, and what was put out now.

    `made` has, for each trigger at `time`, masks of those who put something out, and how much.
    """

    __slots__ = ("held", "last", "made", "text", "time")

    def __init__(self, key: FastKey, states: int, letters: int) -> None:
        self.held = [0] * states
        self.last: list[Noted | None] = [None] * letters
        self.text = key_text(whole_key(key))
        self.time: int | None = None
        self.made: dict[str, list[tuple[int, int]]] = {}

    def made_before(self, trigger: str) -> dict[int, int] | None:
        """How many outputs rules have at this trigger already, by their bits."""
        if trigger not in self.made:
            return None
        found: dict[int, int] = {}
        for mask, number in self.made[trigger]:
            for bit in bits_of(mask):
                found[bit] = found.get(bit, 0) + number
        return found

    def made_by(self, bit: int) -> dict[str, int]:
        """How much one rule has put out at `time`, by trigger."""
        counted = {
            trigger: sum(number for mask, number in made if mask & bit)
            for trigger, made in self.made.items()
        }
        return {trigger: number for trigger, number in counted.items() if number}

    # --- rules that come and go -----------------------------------------------------------------

    def forget(self, gone: Sequence[int]) -> None:
        """Rules that are no longer there, by the numbers of their bits."""
        kept = ~sum(1 << (bit - 1) for bit in gone)
        self.held = [mask & kept for mask in self.held]
        self.made = {
            trigger: [(mask & kept, number) for mask, number in made]
            for trigger, made in self.made.items()
        }

    def shift(self, more: int) -> None:
        """All bits move up by so many."""
        self.held = [mask << more for mask in self.held]
        self.made = {
            trigger: [(mask << more, number) for mask, number in made]
            for trigger, made in self.made.items()
        }


class Group:
    """Rules of one shape. The bits of rules that come first in the library are the highest.

    `room` is the number of the next bit; it falls, and masks are shifted up when it is used up.
    `is_in_order` says that it is still so.
    """

    is_timed = False

    def __init__(self, first: Rule, types: TypeSystem, numbers: Iterator[int]) -> None:
        machine = machine_of(first)
        assert machine is not None, "a rule without a machine has no shape"
        self.sliced = Sliced(machine, self.is_timed)
        self.key_names = next(iter(first.ports.key_names.values()))
        self.keys: dict[FastKey, Any] = {}
        self.members: dict[int, Rule] = {}
        self.room = 0
        self.is_in_order = True
        self.numbers = numbers
        self._types = types
        self._bits: list[int] = []
        self._numbers_by_name: dict[str, int] = {}
        self._letters: dict[Letter, int] = {}
        self._volleys: dict[tuple[int, int], Volley | None] = {}
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
            self._welcome(self.room)
            self.room -= 1
        self.members = dict(sorted(self.members.items(), reverse=True))
        self._numbers_by_name = {rule.name: bit for bit, rule in self.members.items()}
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
        self._look_at_members()
        for bit, rule in self.members.items():
            rule.group = self
            if rule.instances:
                self._absorb(rule, bit)

    def _forget(self, gone: Sequence[int]) -> None:
        for state in self.keys.values():
            state.forget(gone)

    def _make_room(self, more: int) -> None:
        """Shift all bits up."""
        self.members = {bit + more: rule for bit, rule in self.members.items()}
        self.room += more
        for state in self.keys.values():
            state.shift(more)

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
            state = self.keys.get(key)
            if state is None:
                state = self._begin(key)
            self._place(state, instance, number)
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
                    state.made.setdefault(trigger, []).append((bit, count))
        rule.instances.clear()

    def _place(self, state: Any, instance: Runner, number: int) -> None:
        """Set the bits of a rule to where its instance stands."""
        assert isinstance(instance, TabledFilter)
        for at, mask in enumerate(self.sliced.bits(instance.row.bits, self._bits[number])):
            state.held[at] |= mask

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
        return self._bits[self._numbers_by_name[rule.name]]

    def instances_of(self, rule: Rule) -> dict[FastKey, Runner]:
        """The keys of one rule, as it would hold them by itself: for snapshots, and to leave."""
        number = self._numbers_by_name[rule.name]
        bit = self._bits[number]
        letters, atoms = self.letters_by_atom(rule), atoms_of(rule)
        found: dict[FastKey, Runner] = {}
        for key, state in self.keys.items():
            made = state.made_by(bit) if state.made else {}
            if not made and not any(mask & bit for mask in state.held):
                continue
            outputs = Outputs(rule.name, whole_key(key), bool(self.key_names), self._types)
            if made:
                outputs.time, outputs.made = state.time, made
            instance = rule.starter(0, (), outputs, 0)
            assert isinstance(instance, TabledFilter | WindowedFilter)
            self._stand(state, instance, number)
            for place, bound in instance.facts.bound_states.items():
                if instance.is_active(bound):
                    letter = letters[atoms[instance.facts.ports[place]]]
                    instance.places[place] = state.last[letter]
            found[key] = instance
        return found

    def _stand(self, state: Any, instance: Runner, number: int) -> None:
        """Put an instance where a rule stands."""
        assert isinstance(instance, TabledFilter)
        active = self.sliced.active(state.held, self._bits[number])
        instance.row = instance.rows.row_of(active)

    # --- reading --------------------------------------------------------------------------------

    def read(
        self,
        reading: GroupReading,
        key: FastKey | None,
        noted: tuple[int, Event],
        counts: Counts,
        made: list[Event],
    ) -> int:
        """Let all rules read an event; says how many times outputs were made, each in order."""
        if key is None:
            return self._count_without_key(reading, counts)
        state = self.keys.get(key)
        if state is None:
            if reading.is_nothing:
                return 0
            state = self._begin_at(key, noted[1].time)
        last = state.last
        for letter in reading.letters:
            last[letter] = noted
        fired = reading.take(state.held, *reading.masks)
        return self._put_out(fired, state, noted[1], made) if fired else 0

    def _count_without_key(self, reading: GroupReading, counts: Counts) -> int:
        for bit in bits_of(reading.wanted):
            counts.without_key[self.members[bit].name] += 1
        return 0

    def _put_out(
        self,
        fired: Iterable[Fires],
        state: KeyState,
        event: Event,
        made: list[Event],
    ) -> int:
        """What branches put out that have fired: (branch, what counts, who), by branch."""
        time, trigger = event.time, event.id
        base: dict[int, int] | None = None
        if state.time != time:
            state.time, state.made = time, {}
        elif state.made:
            base = state.made_before(trigger)
        own: list[tuple[int, int]] = []
        for branch, counting, who in fired:
            known = (branch, counting)
            volley = self._volleys[known] if known in self._volleys else self._volley(*known)
            if volley is None:
                continue
            count, put_out, members = volley
            before = base
            for earlier, more in own:
                # A rule of which an earlier branch has fired at this same event.
                for bit in bits_of(earlier & who):
                    before = {**(before or {})}
                    before[bit] = before.get(bit, 0) + more
            put_out(made, self._chosen(who, members), state.last, state.text, time, trigger, before)
            own.append((who, count))
        if own:
            known_before = state.made.get(trigger)
            state.made[trigger] = own if known_before is None else known_before + own
        return len(own)

    def _chosen(self, who: int, members: Sequence[Any]) -> Iterable[Any]:
        """The members whose bits are set, the highest first."""
        if who.bit_count() * 8 < len(members):
            chosen, bits = [], self._bits
            while who:
                number = who.bit_length()
                chosen.append(members[number])
                who ^= bits[number]
            return chosen
        digits = f"{who:0{len(members) - 1}b}".encode().translate(_ZEROS)
        return compress(reversed(members), digits)

    def _volley(self, branch: int, counting: int) -> Volley | None:
        """How rules put out what they do when a branch fires so; None where nothing follows."""
        example = next(iter(self.members.values()))
        correlation, facts = example.correlation, example.facts
        assert isinstance(correlation, FilterCorrelation)
        assert facts is not None
        recipe = recipe_of(
            correlation, self._types, self.sliced.fired(branch, counting), facts.ports
        )
        assert recipe is not None, "a rule with such a firing is in no group"
        volley: Volley | None = None
        if recipe.count:
            atoms = atoms_of(example)
            bound = [atoms[port] for port in recipe.ports]
            members: list[Any] = [None] * len(self._bits)
            for bit, rule in self.members.items():
                letters = self.letters_by_atom(rule)
                known = (letters[atom] for atom in bound)
                members[bit] = (bit, rule.name, f"ensue/{rule.name}", *known)
            volley = recipe.count, compile_volley(recipe), members
        self._volleys[branch, counting] = volley
        return volley

    # --- keys -----------------------------------------------------------------------------------

    def _begin_at(self, key: FastKey, now: int) -> Any:
        if len(self.keys) >= self._sweep_at:
            self.sweep(now)
        return self._begin(key)

    def _begin(self, key: FastKey) -> Any:
        state = self.keys[key] = KeyState(key, len(self.sliced.held), len(self._letters))
        return state

    def sweep(self, now: int) -> None:
        """Let go of the keys under which every rule stands as before it started."""
        gone = [
            key
            for key, state in self.keys.items()
            if (state.time is None or state.time < now) and self._is_idle(state, now)
        ]
        for key in gone:
            del self.keys[key]
        self._sweep_at = max(KEYS_BEFORE_A_SWEEP, 2 * len(self.keys))

    def _is_idle(self, state: Any, now: int) -> bool:  # noqa: ARG002
        return not any(state.held)


def _is_whole(noted: Noted) -> bool:
    return isinstance(noted[1], Event) and noted[1].type != ""


_ZEROS = bytes(0 if each == ord("0") else 1 for each in range(256))


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, counted from 1, the highest first."""
    while mask:
        bit = mask.bit_length()
        yield bit
        mask ^= 1 << (bit - 1)
