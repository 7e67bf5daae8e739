"""The table of a machine as an array, filled as events ask for its entries.

In come the bits of events (which ports and predicates they match) and the states that keys are in,
by number; out go entries: the next state, what is put out, what is bound. Nothing here belongs to
a key, so correlations that are alike but for their predicates share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ensue.engine.core.effects import Action, Entry
from ensue.engine.core.numbering import IntegerNumbers, look_up, taller
from ensue.machine.determinise import Table, TableState
from ensue.machine.model import AnyAtom, Machine

NOT_STARTED = 0
"""The state of a key that has not read anything."""


class Entries(Protocol):
    def entry(self, table: Table, state: TableState | None, atoms: frozenset[int]) -> Entry: ...


def atoms_of_bits(machine: Machine, bit_of: dict[Any, int], bits: int) -> frozenset[int]:
    """The atoms of a machine that an event satisfies, from its bits."""
    return frozenset(
        number
        for number, atom in enumerate(machine.atoms)
        if isinstance(atom, AnyAtom) or (atom in bit_of and bits >> bit_of[atom] & 1)
    )


class Symbols:
    """Numbers the bit patterns that occur, each with the atoms that it stands for."""

    def __init__(self, machine: Machine, bit_of: dict[Any, int]) -> None:
        self.atoms: list[frozenset[int]] = []
        self._always = [n for n, atom in enumerate(machine.atoms) if isinstance(atom, AnyAtom)]
        self._atoms_of_bit: dict[int, list[int]] = {}
        for number, atom in enumerate(machine.atoms):
            if atom in bit_of and not isinstance(atom, AnyAtom):
                self._atoms_of_bit.setdefault(bit_of[atom], []).append(number)
        self._number_of: dict[int, int] = {}
        self._numbers: list[IntegerNumbers] = []
        self._symbol_of_pattern: list[int] = []
        self._lut = np.empty(0, np.int32)

    def number(self, bits: Any) -> Any:
        if bits.dtype.itemsize > 2:
            return self._number_many(bits if bits.ndim == 2 else bits[:, None])
        if not self._lut.size:
            self._lut = np.full(np.iinfo(bits.dtype).max + 1, -1, np.int32)
        numbers = np.empty(len(bits), np.int32)
        if look_up(bits, self._lut, numbers) < 0:
            self._add(int(each) for each in np.unique(bits))
            for pattern, number in self._number_of.items():
                self._lut[pattern] = number
            look_up(bits, self._lut, numbers)
        return numbers

    def _number_many(self, words: Any) -> Any:
        """Number patterns of many bits: the words of each, one after the other, by hash tables."""
        found = np.zeros(len(words), np.int32)
        for place in range(words.shape[1]):
            if len(self._numbers) <= 2 * place:
                self._numbers += [IntegerNumbers(), IntegerNumbers()]
            of_word, of_pair = self._numbers[2 * place : 2 * place + 2]
            one = of_word.number(words[:, place].astype(np.int64))
            found = of_pair.number(found.astype(np.int64) << 32 | one)
        known = len(self._symbol_of_pattern)
        if found.size and int(found.max()) >= known:
            # Written from the end, so that the first row of each number is what stays.
            first = np.empty(1 + int(found.max()), np.int64)
            first[found[::-1]] = np.arange(len(found) - 1, -1, -1)
            for row in first[known:].tolist():
                pattern = sum(int(word) << 64 * n for n, word in enumerate(words[row]))
                self._add([pattern])
                self._symbol_of_pattern.append(self._number_of[pattern])
        return np.array(self._symbol_of_pattern, np.int32)[found]

    def add(self, atoms: frozenset[int]) -> int:
        """A symbol that no event has: the firing of a timer."""
        self.atoms.append(atoms)
        return len(self.atoms) - 1

    def _add(self, patterns: Iterable[int]) -> None:
        for pattern in patterns:
            if pattern not in self._number_of:
                self._number_of[pattern] = len(self.atoms)
                self.atoms.append(self._atoms_in(pattern))

    def _atoms_in(self, pattern: int) -> frozenset[int]:
        """As `atoms_of_bits`, for a machine of many atoms of which a pattern has few."""
        found = set(self._always)
        while pattern:
            bit = pattern & -pattern
            pattern ^= bit
            found.update(self._atoms_of_bit.get(bit.bit_length() - 1, ()))
        return frozenset(found)


class FilledTable:
    """`places` is how many places a key has; entry is (next state, action, place, more places)."""

    columns = 4

    def __init__(self, table: Table, entries: Entries, bit_of: dict[Any, int], places: int) -> None:
        self.machine_table = table
        self.symbols = Symbols(table.machine, bit_of)
        self.places = places
        self.known: list[TableState | None] = [None]
        self.entries_made = 0
        self.array = np.full((16, 8, self.columns), -1, np.int32)
        self.bind_from = np.zeros(2, np.int32)
        self.bind_places = np.zeros(0, np.int32)
        self.actions: list[Action] = [()]
        self._entries = entries
        self._number_of: dict[object, int] = {}
        self._bind_sets: dict[frozenset[int], int] = {frozenset(): 0}
        self._action_of: dict[Action, int] = {(): 0}

    def number_symbols(self, bits: Any) -> Any:
        symbols = self.symbols.number(bits)
        self._widen()
        return symbols

    def _widen(self) -> None:
        """Have room for every symbol."""
        if len(self.symbols.atoms) > self.array.shape[1]:
            size = (len(self.array), 2 * len(self.symbols.atoms), self.columns)
            wider = np.full(size, -1, np.int32)
            wider[:, : self.array.shape[1]] = self.array
            self.array = wider

    @property
    def words(self) -> npt.NDArray[np.uint64]:
        """The array with two numbers of an entry in each word, as loops read it."""
        return self.array.view(np.uint64)

    def fill(self, state: int, symbol: int) -> tuple[int, ...]:
        """Work out an entry, and return it."""
        entry = self._entry(state, symbol)
        self.entries_made += 1
        # Worked out first: it may make the array another one.
        row = self._row(entry, state == NOT_STARTED)
        self.array[state, symbol] = row
        return row

    def _entry(self, state: int, symbol: int) -> Entry:
        atoms = self.symbols.atoms[symbol]
        return self._entries.entry(self.machine_table, self.known[state], atoms)

    def _row(self, entry: Entry, begins: bool) -> tuple[int, ...]:  # noqa: ARG002
        one, *more = sorted(entry.binds) or [self.places]
        return (
            self.number(entry.to),
            self.action(entry.action),
            one,
            self.bind_set(frozenset(more)),
        )

    def number(self, state: TableState) -> int:
        identity = self._identity(state)
        number = self._number_of.get(identity)
        if number is None:
            number = self._number_of[identity] = len(self.known)
            self.known.append(state)
            if number >= len(self.array):
                self.array = taller(self.array, 2 * number, -1)
            self._added(state, number)
        return number

    def renumbered(self, states: npt.NDArray[np.int32], of: FilledTable) -> Any:
        """States of another table of the same machine, by the numbers that they have here."""
        used, which = np.unique(states, return_inverse=True)
        known = [of.known[number] for number in used.tolist()]
        numbers = [NOT_STARTED if s is None else self.number(self._alone(s)) for s in known]
        return np.array(numbers, np.int32)[which]

    def _alone(self, state: TableState) -> TableState:
        """The state without the moves that are known from it."""
        return TableState(state.active)

    def _identity(self, state: TableState) -> object:
        """What two states have in common that are one."""
        return state.active

    def _added(self, state: TableState, number: int) -> None:
        """A state has been given a number."""

    def action(self, action: Action) -> int:
        if action not in self._action_of:
            self._action_of[action] = len(self.actions)
            self.actions.append(action)
        return self._action_of[action]

    def bind_set(self, places: frozenset[int]) -> int:
        if places not in self._bind_sets:
            self._bind_sets[places] = len(self._bind_sets)
            self.bind_places = np.append(self.bind_places, np.array(sorted(places), np.int32))
            self.bind_from = np.append(self.bind_from, np.int32(len(self.bind_places)))
        return self._bind_sets[places]

    def begin_at_first(self) -> None:
        """Let a key in the first state be one that has not started, where that is all the same."""
        self._number_of[self._identity(self.machine_table.first)] = NOT_STARTED

    def number_of_set(self, active: frozenset[int]) -> int:
        """The number of a state that is given as states of the machine; {-1} has not started."""
        return NOT_STARTED if active == {-1} else self.number(TableState(active))

    def is_idle(self) -> npt.NDArray[np.bool_]:
        """For each state, whether a key in it is as at its start."""
        first = self.number(self.machine_table.first)
        idle = np.zeros(len(self.known), np.bool_)
        idle[[NOT_STARTED, first]] = True
        return idle

    def bound(self) -> npt.NDArray[np.bool_]:
        """For each state and place, whether a reading in it still counts."""
        machine = self.machine_table.machine
        by_state = np.zeros((len(self.known), self.places + 1), np.bool_)
        for number, state in enumerate(self.known):
            if state is not None:
                for branch in machine.branches:
                    for place, _, bound in branch.places:
                        by_state[number, place] |= bound in state.active
        return by_state
