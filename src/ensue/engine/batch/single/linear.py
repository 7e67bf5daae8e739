"""Steps a machine in columns along its transitions: for machines past the budget of a table.

In come events as symbols, with keys and times; out go `Firings`. A key has the start of every state
of its machine, and an event takes the transitions of its symbol in their order, whatever the
window. A firing has a *pattern* (its branch, labels and places); patterns are numbered as they
come, and each has its action.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.matching import SymbolNumbers
from ensue.engine.batch.output.firings import Firings
from ensue.engine.batch.single.linear_steps import (
    BINDS,
    BINDS_FIRST,
    EMITS,
    FIRES,
    FiringPatterns,
    LinearCells,
    LinearMachine,
    LinearRoom,
    SymbolTransitions,
    rehash_patterns,
    walk_linear,
)
from ensue.engine.core.cell_step import WalkedEvents
from ensue.engine.core.cells import FiringRoom
from ensue.engine.core.effects import Action, EclActions, FilterActions, emitted_types
from ensue.engine.core.jit import FAR
from ensue.engine.core.numbering import Numbers, Rows, taller
from ensue.engine.core.rule_table import Symbols, first_starts
from ensue.machine.model import Bind, Emit, Fire, Machine

_ENDLESS = 2**61


class LinearWalk:
    """All keys of one correlation, none of whose labels ever changes, state by state."""

    def __init__(
        self,
        machine: Machine,
        actions: FilterActions | EclActions,
        bit_of: dict[Any, int],
        places: int,
    ) -> None:
        self._actions_of = actions
        self.machine = machine
        self._begin = actions.begin()
        self._symbols = Symbols(machine, bit_of)
        self._symbol_numbers = SymbolNumbers(self._symbols)
        self._transitions = TransitionLists(machine)
        self._flat = _flatten(machine)
        self._initial = first_starts(machine)
        self.started = np.zeros(0, np.bool_)
        self.starts = np.zeros((0, len(machine.names)), np.int64)
        self.slots = np.zeros((0, places), np.int64)
        self.actions: list[Action] = [self._begin]
        self._hashed = np.zeros(256, np.int32)
        self._label_words = _words(len(branch.labels) for branch in machine.branches)
        place_words = _words(len(branch.places) for branch in machine.branches)
        self._patterns = np.zeros((128, 1 + self._label_words + place_words), np.uint64)
        self._is_silent = np.zeros(128, np.bool_)

    def read(self, bits: Any, keys: Numbers, times: Any, key_count: int, before: int) -> Firings:
        self.grow(key_count)
        at = fired = 0
        known = len(self.actions) - 1
        room = FiringRoom(max(1024, len(keys) // 8), self.slots.shape[1])
        read = WalkedEvents(self._symbol_numbers.of(bits), times, keys, before)
        transitions = self._transitions.of(self._symbols.atoms)
        while True:
            patterns = FiringPatterns(
                self._hashed, self._patterns, self._is_silent, self._label_words, known
            )
            held = room.arrays
            at, fired, known = walk_linear(
                read, at, transitions, self._flat, LinearCells(self.starts, self.slots), patterns,
                LinearRoom(held.rows, held.actions, held.slots), fired,
            )  # fmt: skip
            self._add_actions(known)
            if at == len(keys):
                break
            if 2 * (known + self._flat.most_fired) > len(self._hashed):
                self._make_room_for_patterns(known)
            else:
                room.grow()
        # Action 0 is what is put out at the start of a key; then come the actions of the patterns.
        room.arrays.actions[:fired] += 1
        written = room.written(fired)
        firings = Firings(written.rows, written.actions, written.slots, self.actions)
        return self._with_starts(firings, keys) if self._begin else firings

    def _add_actions(self, known: int) -> None:
        """Add the actions of patterns that have not come before."""
        for number in range(len(self.actions) - 1, known):
            branch, *words = (int(each) for each in self._patterns[number])
            labels = _joined(words[: self._label_words])
            action = self._actions_of.fired(branch, labels, _joined(words[self._label_words :]))
            self.actions.append(action)
            self._is_silent[number] = not action

    def _make_room_for_patterns(self, known: int) -> None:
        size = 2 * max(len(self._hashed), known + self._flat.most_fired)
        self._patterns = taller(self._patterns, size, 0)
        self._is_silent = taller(self._is_silent, size, False)
        self._hashed = np.zeros(1 << (2 * size - 1).bit_length(), np.int32)
        rehash_patterns(self._hashed, self._patterns, known)

    def grow(self, key_count: int) -> None:
        if key_count > len(self.starts):
            size = max(key_count, 2 * len(self.starts))
            before = len(self.starts)
            self.starts = taller(self.starts, size, 0)
            self.starts[before:] = self._initial
            self.slots = taller(self.slots, size, 0)
            self.started = taller(self.started, size, False)

    def _with_starts(self, firings: Firings, keys: Numbers) -> Firings:
        """Put the outputs of the start of a key before the firings of its first event."""
        fresh, first = np.unique(keys, return_index=True)
        new = first[~self.started[fresh]]
        self.started[fresh] = True
        at = np.concatenate([new, firings.at])
        order = np.argsort(at, kind="stable")
        nowhere = np.zeros((len(new), firings.slots.shape[1]), np.int64)
        return Firings(
            at[order],
            np.concatenate([np.zeros(len(new), np.int64), firings.actions])[order],
            np.concatenate([nowhere, firings.slots])[order],
            self.actions,
        )

    @property
    def slot_of(self) -> Sequence[int]:
        return range(self.slots.shape[1])

    def starts_of(self, chosen: Rows) -> npt.NDArray[np.int64]:
        return self.starts[chosen]

    def started_of(self, chosen: Rows) -> npt.NDArray[np.bool_]:
        return self.started[chosen]

    def take_starts(
        self, at: Any, starts: npt.NDArray[np.int64], started: npt.NDArray[np.bool_]
    ) -> None:
        self.starts[at] = starts
        self.started[at] = started

    def drop_expired(self, now: int) -> None:
        """Let every key drop the starts that have left the window by now."""
        if self.machine.window is not None:
            edge = now - self.machine.window
            self.starts[self.starts < edge] = -FAR

    def is_busy(self) -> Any:
        return (self.starts != self._initial).any(axis=1)

    def bound(self) -> npt.NDArray[np.bool_]:
        out = np.zeros(self.slots.shape, np.bool_)
        for branch in self.machine.branches:
            for place, _, state in branch.places:
                out[:, place] |= self.starts[:, state] != -FAR
        return out


class TransitionLists:
    """For each symbol the transitions that an event of it can take, in their order.

    A list has the transitions whose input the event satisfies, and the internal transitions that
    can follow from states set by these. All other internal transitions would change nothing: where
    labels never change, a derived state of a filter stays as long as the states it is derived from.
    In ECL all internal transitions are tried.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._is_filter = bool(machine.branches)
        self._lists: list[list[int]] = []
        self._simple: list[bool] = []
        self._flat: SymbolTransitions | None = None

    def of(self, symbols: Sequence[frozenset[int]]) -> SymbolTransitions:
        if self._flat is None or len(symbols) > len(self._lists):
            for atoms in symbols[len(self._lists) :]:
                self._add(atoms)
            simple = np.array(self._simple, np.bool_)
            self._flat = SymbolTransitions(*_rows_of(self._lists), simple)
        return self._flat

    def _add(self, atoms: frozenset[int]) -> None:
        changed: set[int] = set()
        listed: list[int] = []
        inputs: list[int] = []
        for number, each in enumerate(self._machine.transitions):
            if each.input is None:
                follows = any(states & changed for states in each.enabling)
                takes_part = follows or not self._is_filter
            else:
                takes_part = each.input in atoms
            if takes_part:
                if each.input is not None:
                    inputs.append(len(listed))
                listed.append(number)
                changed |= each.target
        self._lists.append(listed)
        self._simple.append(inputs in ([], [0]))


def _flatten(machine: Machine) -> LinearMachine:
    """The transitions as arrays."""
    inputs, kinds, numbers = [], [], []
    types = emitted_types(machine)
    sets: list[list[int]] = []
    set_from, clears, targets = [0], [], []
    for each in machine.transitions:
        assert each.input is None or isinstance(each.input, int)
        inputs.append(each.input is not None)
        sets += [sorted(states) for states in each.enabling]
        set_from.append(len(sets))
        clears.append(sorted(each.clear))
        targets.append(sorted(each.target))
        match each.effect:
            case Bind(place, first):
                kinds.append(BINDS_FIRST if first else BINDS)
                numbers.append(place)
            case Fire(branch):
                kinds.append(FIRES)
                numbers.append(branch)
            case Emit(type_):
                kinds.append(EMITS)
                numbers.append(types.index(type_))
            case _:
                kinds.append(0)
                numbers.append(0)
    constant = np.zeros(len(machine.names), np.bool_)
    constant[sorted(machine.constant)] = True
    branches = machine.branches
    return LinearMachine(
        np.array(inputs, np.bool_),
        np.array(set_from, np.int32),
        *_rows_of(sets),
        *_rows_of(clears),
        *_rows_of(targets),
        constant,
        np.array(kinds, np.int8),
        np.array(numbers, np.int32),
        *_rows_of([[state for _, state in branch.labels] for branch in branches]),
        *_rows_of([[state for _, _, state in branch.places] for branch in branches]),
        _ENDLESS if machine.window is None else machine.window,
        1 + sum(isinstance(each.effect, Fire | Emit) for each in machine.transitions),
    )


def _rows_of(rows: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Rows of different lengths as (where each begins, all of them)."""
    begins = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int32)
    return begins, np.array([each for row in rows for each in row], np.int32)


def fits_linear_walk(machine: Machine) -> bool:
    """Whether the machine can be stepped in columns: not if its labels change."""
    return not machine.switches


def _words(bits: Iterable[int]) -> int:
    """How many words of 64 bits the most of these bits take; at least one."""
    return (max(bits, default=1) + 63) // 64 or 1


def _joined(words: Sequence[int]) -> int:
    return sum(word << 64 * place for place, word in enumerate(words))
