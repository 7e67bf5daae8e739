"""An index over very many predicates, which finds those that hold for an event.

In come predicates, each under a number; out come, for an event, the numbers of the predicates that
hold, in no order. Every predicate is split into conjunctions (`outcomes`), and every conjunction
waits at one place (`placing`), which an event must reach for it to hold. The conjunctions at these
places are checked: atoms that compare one name with a constant in a compiled loop, other atoms by
evaluation, once for each event and for all conjunctions that share them. Predicates can be added
and removed at any time. Events in columns are matched in `columns`.

A predicate with too many conjunctions waits at several places, one of which an event must reach,
and is then evaluated as a whole. The result is always that of `evaluation.holds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ensue.events.event import Event
from ensue.lang.expressions.asking import AskingScope, Ontology, TemporalStore
from ensue.lang.expressions.evaluation import evaluate
from ensue.lang.expressions.scopes import MISSING, Scope
from ensue.lang.expressions.tree import Expression, Logic, Not
from ensue.lang.matching.attribute import AttributeIndex, Table
from ensue.lang.matching.computed import computed_test, keys_of
from ensue.lang.matching.outcomes import Signed, conjunctions, is_uncast, truth
from ensue.lang.matching.packed import kernels as k
from ensue.lang.matching.packed.packing import Codes, joined, pack, unpack
from ensue.lang.matching.packed.storage import Packed, Storage
from ensue.lang.matching.placing import IndexPlace, places_of
from ensue.lang.matching.tests import NEVER, Parts, Test, test_of

FEW_NAMES = 32
"""Up to so many names, all are read from an event; with more, only those that the event has."""
_SWEEP_AFTER = 1024


_walk_buckets: Any = k.walk_buckets
_stab_and_check: Any = k.stab_and_check


class EvaluatedAtom:
    """An atom that only evaluation decides; conjunctions may share it."""

    __slots__ = ("atom", "number", "uses", "whole")

    def __init__(self, atom: Expression, number: int, whole: bool) -> None:
        self.atom = atom
        self.number = number
        self.uses = 0
        self.whole = whole
        """Whether the atom is a whole predicate: its value must be TRUE itself, without a cast."""


class PredicateIndex:
    """The index. `history` and `ontology` answer the terms of predicates.

    An index is for one thread at a time, also for matching: it has one array for an event's facts.
    """

    def __init__(
        self, history: TemporalStore | None = None, ontology: Ontology | None = None
    ) -> None:
        self.history = history
        self.ontology = ontology
        self.storage = Storage()
        self.codes = Codes()
        self.always: Table = {}
        """The bucket of conjunctions that wait for no value: they are checked for every event."""
        self.absent: Table = {}
        """The buckets of conjunctions that wait for a name without a value, by its slot."""
        self.awaited: dict[tuple[int, bool], tuple[EvaluatedAtom, bool]] = {}
        self.awaited_buckets: Table = {}
        """The buckets of conjunctions that wait for an atom of `awaited`, by its key there."""
        self.evaluated: dict[int, tuple[tuple[EvaluatedAtom, bool], ...]] = {}
        """The atoms of each entry that only evaluation decides, with the truth that they need."""
        self._evaluated_atoms: dict[tuple[Expression, bool], EvaluatedAtom] = {}
        self._first: dict[int, int] = {}
        self.attributes: dict[Parts, AttributeIndex] = {}
        self.by_slot: list[AttributeIndex | None] = []
        self._free_slots: list[int] = []
        self._by_key: dict[str, list[AttributeIndex]] | None = None
        self._removals = 0
        self._next_number = 0
        self._found = np.empty(16, np.int64)
        self._facts = np.tile(k.BLANK, 16)
        self._cells = self._facts.data

    def __len__(self) -> int:
        return len(self._first)

    # --- predicates come and go ------------------------------------------------------------------

    def add(self, number: int, predicate: Expression) -> None:
        """Add a predicate under a number that no other predicate has."""
        self._first[number] = -1
        found = conjunctions(predicate)
        if found is None:
            evaluated = ((self._evaluated_atom(predicate, whole=True), True),)
            for signed in self._needed(predicate, True):
                self._wait(number, (signed,), evaluated)
            return
        for conjunction in found:
            self._wait(number, conjunction, None, is_uncast(predicate))

    def remove(self, number: int) -> None:
        """Remove the predicate under a number. Raises `KeyError` if there is none."""
        entry = self._first.pop(number)
        while entry >= 0:
            following = int(self.storage.sibling[entry])
            self._forget(entry)
            self.storage.remove(entry)
            entry = following
        self._removals += 1
        if self._removals > _SWEEP_AFTER + 4 * len(self.attributes):
            self._sweep()

    def _wait(
        self,
        number: int,
        conjunction: Sequence[Signed],
        instead: tuple[tuple[EvaluatedAtom, bool], ...] | None,
        uncast: bool = False,
    ) -> None:
        """Let a conjunction wait at the best of its places.

        With `instead`, these atoms are evaluated there in place of the conjunction.
        """
        tests = [None if uncast else _test_of(each) for each in conjunction]
        if NEVER in tests:
            return
        plain: list[Test | None] = [each if isinstance(each, Test) else None for each in tests]
        for test in plain:
            if test is not None and test.positive and test.sign == "=":
                self.attribute(test.name).see(test)
        offers = places_of(conjunction, plain, self.attribute, self.ontology)
        place = min(offers, key=lambda each: each.likelihood, default=None)
        evaluated: list[tuple[EvaluatedAtom, bool]] = list(instead or ())
        packed: list[Packed] = []
        if instead is None:
            for position, (signed, test) in enumerate(zip(conjunction, plain, strict=True)):
                if place is not None and position in place.decided:
                    continue
                atom = None
                if test is not None:
                    atom = pack(test, self.attributes[test.name].slot, self.codes)
                if atom is None:
                    evaluated.append((self._evaluated_atom(signed.atom, uncast), signed.positive))
                else:
                    packed.append(atom)
        packed = joined(packed)
        if place is None:
            place = self._without_name(evaluated)
        for table, key in place.keys:
            entry = self._entry(number, packed, evaluated)
            self.storage.wait_in(entry, table, key)
        if place.range is not None:
            entry = self._entry(number, packed, evaluated)
            self.storage.wait_for_range(entry, *place.range)

    def _entry(
        self, number: int, packed: Sequence[Packed], evaluated: Sequence[tuple[EvaluatedAtom, bool]]
    ) -> int:
        entry = self.storage.add(number, self._first[number], packed, bool(evaluated))
        self._first[number] = entry
        if evaluated:
            self.evaluated[entry] = tuple(evaluated)
            for each, _ in evaluated:
                each.uses += 1
        for atom in packed:
            attribute = self.by_slot[atom.cell // k.CELLS]
            assert attribute is not None
            attribute.checked[atom.cell % k.CELLS] += 1
            if atom.cell % k.CELLS == k.TEXT and atom.low == atom.high:
                self.codes.use(int(atom.low))
        return entry

    def _forget(self, entry: int) -> None:
        for each, _ in self.evaluated.pop(entry, ()):
            each.uses -= 1
            if not each.uses:
                del self._evaluated_atoms[(each.atom, each.whole)]
                self.awaited.pop((each.number, True), None)
                self.awaited.pop((each.number, False), None)
        for atom in self.storage.atoms_of(entry):
            attribute = self.by_slot[atom.cell // k.CELLS]
            assert attribute is not None
            attribute.checked[atom.cell % k.CELLS] -= 1
            if atom.cell % k.CELLS == k.TEXT and atom.low == atom.high:
                self.codes.release(int(atom.low))

    def _without_name(self, evaluated: Sequence[tuple[EvaluatedAtom, bool]]) -> IndexPlace:
        """The place of a conjunction without names: its first atom, or always if it has none."""
        if not evaluated:
            return IndexPlace(1.0, [(self.always, "always")])
        first, positive = evaluated[0]
        key = (first.number, positive)
        self.awaited[key] = evaluated[0]
        return IndexPlace(1.0, [(self.awaited_buckets, key)])

    def _evaluated_atom(self, atom: Expression, whole: bool = False) -> EvaluatedAtom:
        known = self._evaluated_atoms.get((atom, whole))
        if known is None:
            known = EvaluatedAtom(atom, self._next_number, whole)
            self._next_number += 1
            self._evaluated_atoms[(atom, whole)] = known
        return known

    def _needed(self, expression: Expression, wanted: bool) -> list[Signed]:
        """Signed atoms, at least one of which holds whenever the expression is as wanted."""
        match expression:
            case Not(operand):
                return self._needed(operand, not wanted)
            case Logic(operands, operators):
                return self._needed_of_chain(operands, operators, wanted)
            case _:
                return [Signed(expression, wanted)]

    def _needed_of_chain(
        self, operands: Sequence[Expression], operators: Sequence[str], wanted: bool
    ) -> list[Signed]:
        behind = {each: self._needed(operands[-1], each) for each in (True, False)}
        for operand, sign in zip(reversed(operands[:-1]), reversed(operators), strict=True):
            yes, no = self._needed(operand, True), self._needed(operand, False)
            if sign == "XOR":
                behind = dict.fromkeys(
                    (True, False), self._rarer(yes + no, behind[True] + behind[False])
                )
                continue
            both, either = (True, False) if sign == "AND" else (False, True)
            mine = {True: yes, False: no}
            behind = {
                both: self._rarer(mine[both], behind[both]),
                either: mine[either] + behind[either],
            }
        return list(dict.fromkeys(behind[wanted]))

    def _rarer(self, one: list[Signed], other: list[Signed]) -> list[Signed]:
        return min(one, other, key=lambda each: sum(map(self._likelihood, each)))

    def _likelihood(self, signed: Signed) -> float:
        test = _test_of(signed)
        if test == NEVER:
            return 0.0
        plain = test if isinstance(test, Test) else None
        offers = places_of((signed,), (plain,), self.attribute, self.ontology)
        return min((each.likelihood for each in offers), default=2.0)

    # --- names -----------------------------------------------------------------------------------

    def attribute(self, parts: Parts) -> AttributeIndex:
        known = self.attributes.get(parts)
        if known is None:
            slot = self._free_slots.pop() if self._free_slots else len(self.by_slot)
            known = self.attributes[parts] = AttributeIndex(parts, slot, self.absent)
            if slot == len(self.by_slot):
                self.by_slot.append(known)
            else:
                self.by_slot[slot] = known
            self._by_key = None
            self._resize()
        return known

    def _sweep(self) -> None:
        """Drop the names that no predicate uses any more."""
        self._removals = 0
        for parts, attribute in list(self.attributes.items()):
            if attribute.is_idle:
                del self.attributes[parts]
                self.by_slot[attribute.slot] = None
                self._free_slots.append(attribute.slot)
        self._by_key = None

    def _resize(self) -> None:
        if self._facts.size < k.CELLS * len(self.by_slot):
            self._facts = np.tile(k.BLANK, 2 * len(self.by_slot))
            self._cells = self._facts.data

    def _relevant(self, event: Event) -> Iterable[AttributeIndex]:
        """The names of predicates that the event may have."""
        if len(self.attributes) <= FEW_NAMES:
            return self.attributes.values()
        if self._by_key is None:
            self._by_key = {}
            for attribute in self.attributes.values():
                for key in keys_of(attribute.parts) or {"id"}:
                    self._by_key.setdefault(key, []).append(attribute)
        keys = {"id", "source", "type", "time", "specversion", *event.extensions}
        keys.update(event.attributes)
        found: dict[int, AttributeIndex] = {}
        for key in keys:
            for attribute in self._by_key.get(key, ()):
                found[attribute.slot] = attribute
        return found.values()

    # --- matching --------------------------------------------------------------------------------

    def match(self, event: Event) -> list[int]:
        """The numbers of the predicates that hold for an event, each once, in no order."""
        scope = AskingScope(event, self.history, self.ontology)
        outcomes: dict[int, bool | None] = {}
        buckets = [*self.always.values(), *self.opened_by_evaluation(scope, outcomes)]
        noted: list[int] = []
        try:
            found = self._search(event, buckets, noted)
        finally:
            for cell in noted:
                self._facts[cell : cell + k.CELLS] = k.BLANK
        return self._judged(found, scope, outcomes) if found.size else []

    def _search(self, event: Event, buckets: list[int], noted: list[int]) -> Any:
        """The entries at the places of an event whose packed atoms hold; cells go into `noted`."""
        cells, codes, odd = self._cells, self.codes.by_text, False
        stabbed: list[tuple[Any, float]] = []
        for attribute in self._relevant(event):
            value = attribute.read(event)
            if value is MISSING:
                continue
            noted.append(attribute.slot * k.CELLS)
            attribute.probe(value, buckets, self.ontology)
            odd |= attribute.note(value, cells, codes)
            attribute.stab(value, stabbed)
        for slot, bucket in self.absent.items():
            if not cells[slot * k.CELLS + k.PRESENT]:
                buckets.append(bucket)
        storage, found, total = self.storage, self._room(), 0
        if buckets:
            opened = np.array(list(set(buckets)), np.int32)
            total = _walk_buckets(opened, storage.heads, *storage.arrays(), self._facts, odd, found)
        for intervals, number in stabbed:
            held = (*intervals.arrays(), *storage.arrays(), self._facts)
            total = _stab_and_check(number, *held, odd, found, total)
        return found[:total]

    def opened_by_evaluation(self, scope: Scope, outcomes: dict[int, bool | None]) -> list[int]:
        """The buckets of conjunctions that wait for an atom which only evaluation decides."""
        return [
            bucket
            for key, bucket in self.awaited_buckets.items()
            if self._outcome(self.awaited[key][0], scope, outcomes) is key[1]
        ]

    def _room(self) -> Any:
        if self._found.size < self.storage.entries:
            self._found = np.empty(2 * self.storage.entries, np.int64)
        return self._found

    def _judged(self, found: Any, scope: Scope, outcomes: dict[int, bool | None]) -> list[int]:
        """The predicates of the entries that hold after evaluation of their other atoms."""
        if found.max() > k.ENTRY:
            kept = [each for each in found.tolist() if self.entry_holds(each, scope, outcomes)]
            found = np.array(kept, np.int64) & k.ENTRY
        return list(dict.fromkeys(self.storage.predicate[found].tolist()))

    def entry_holds(self, marked: int, scope: Scope, outcomes: dict[int, bool | None]) -> bool:
        """Whether the atoms of an entry hold that the loops could not decide."""
        if marked <= k.ENTRY:
            return True
        entry = marked & k.ENTRY
        if marked & k.ALL_TO_ASK:
            for atom in self.storage.atoms_of(entry):
                signed = unpack(atom, self.by_slot, self.codes)
                if truth(evaluate(signed.atom, scope)) is not signed.positive:
                    return False
        for evaluated, positive in self.evaluated.get(entry, ()):
            if self._outcome(evaluated, scope, outcomes) is not positive:
                return False
        return True

    def _outcome(
        self, evaluated: EvaluatedAtom, scope: Scope, outcomes: dict[int, bool | None]
    ) -> bool | None:
        if evaluated.number not in outcomes:
            outcome = evaluate(evaluated.atom, scope)
            if evaluated.whole:
                outcomes[evaluated.number] = outcome.value is True and not outcome.errors
            else:
                outcomes[evaluated.number] = truth(outcome)
        return outcomes[evaluated.number]


def _test_of(signed: Signed) -> Test | str | None:
    """The test that an atom is, of a name or of a computed name."""
    found = test_of(signed)
    return computed_test(signed) if found is None else found
