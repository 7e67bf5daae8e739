"""The symbols of a table: the bit patterns of events, numbered as they occur.

In come the bits of events (which ports and predicates of a rule they match); out go numbers, and
for each number the atoms of the machine that such an event satisfies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ensue.engine.core.numbering import IntegerNumbers, look_up
from ensue.machine.model import AnyAtom, Machine

NOT_STARTED = 0
"""The state of a key that has not read anything."""


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
