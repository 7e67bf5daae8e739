"""Which rows a correlation reads, what they match, and under which keys: for many rows at once.

The columns form of `ensue.engine.ports`. In comes a batch; out go `Matches`: the rows that match a
port and have a key, in their order, with one bit for each port and predicate. A row that is read
under two keys is there twice. A port's type, source and predicate are tests on a column, and tests
that several ports or correlations share are made once a batch. Rows come in segments, from the
input and from rules that feed the correlation; `gathered` puts what is read of them into the order
of the stream. `SymbolNumbers` makes symbols of the bits, as the table of a rule has them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.engine.batch.input.batches import Batch, accepted_types
from ensue.engine.batch.input.column import mask_of_rows
from ensue.engine.batch.input.keys import Keys
from ensue.engine.core.jit import compiled
from ensue.engine.core.numbering import IntegerNumbers, Numbers, Rows, distinct
from ensue.engine.core.rule_table import Symbols
from ensue.engine.ports import key_names
from ensue.events.types import TypeSystem
from ensue.lang.derived.wiring import reads_outside, rules_named, source_test
from ensue.lang.expressions.derived_names import path_to
from ensue.lang.expressions.tree import (
    Comparison,
    Exists,
    Expression,
    In,
    Like,
    Logic,
)
from ensue.lang.syntax import CommonKey, Correlation, EventPort
from ensue.machine.model import Machine, PortAtom, PredicateAtom

WORD = 64
"""How many ports and predicates have room in one number; for more, a row has several."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows that match a port and have a key: their bits and the numbers of their keys.

    `bits` has a number for each row, or a row of numbers where there are more than 64 bits.
    """

    rows: Rows
    bits: Any
    keys: Numbers
    without_key: int


@dataclass(frozen=True)
class Segment:
    """Rows that a correlation may read, and where each stands in the order of the stream.

    `author` is the correlation that has put the rows out; None for rows from outside.
    """

    batch: Batch
    positions: npt.NDArray[np.int64]
    author: str | None = None

    def since(self, position: npt.NDArray[np.int64]) -> Segment:
        """The rows from a position in the stream on."""
        begin = bisect_left(range(len(self.positions)), tuple(position), key=self._position)
        return Segment(self.batch.since(begin), self.positions[begin:], self.author)

    def _position(self, row: int) -> tuple[int, ...]:
        return tuple(self.positions[row].tolist())


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a correlation reads of some segments: row `rows[n]` of `batches[which[n]]`."""

    batches: Sequence[Batch]
    rows: Rows
    bits: Any
    keys: Numbers
    times: npt.NDArray[np.int64]
    which: Rows | None
    _positions: npt.NDArray[np.int64]

    def positions(self, at: Rows | slice = slice(None)) -> npt.NDArray[np.int64]:
        """Where these readings stand in the stream."""
        # Readings of one segment need not be put in order.
        return self._positions[self.rows[at] if self.which is None else at]

    def begins_row(self, at: int) -> bool:
        """Whether the reading before this one is of another row; a row may have several keys."""
        return (
            at == 0
            or (self.positions(slice(at - 1, at)) != self.positions(slice(at, at + 1))).any()
        )


class _Origin(NamedTuple):
    """For rows of one origin: the bits of ports by types, and the tests of each bit."""

    by_type: Any
    tests: Mapping[int, Sequence[Expression]]


class Matcher:
    """The ports and predicates of one correlation."""

    def __init__(
        self, correlation: Correlation, machine: Machine | None, types: TypeSystem
    ) -> None:
        self._ports = [port for port in correlation.ports if isinstance(port, EventPort)]
        self._predicates = [
            atom.predicate
            for atom in (machine.atoms if machine is not None else ())
            if isinstance(atom, PredicateAtom)
        ]
        self.bit_of: dict[Any, int] = {
            PortAtom(port.name): bit for bit, port in enumerate(self._ports)
        }
        for number, predicate in enumerate(self._predicates):
            self.bit_of[PredicateAtom(predicate)] = len(self._ports) + number
        self.size = len(self._ports) + len(self._predicates)
        self._dtype: Any = next(
            kind
            for kind in (np.uint8, np.uint16, np.uint32, np.uint64)
            if np.iinfo(kind).bits >= min(self.size, WORD)
        )
        words = (self.size + WORD - 1) // WORD
        self._is_wide = words > 1
        self.no_bits: Any = np.empty((0, words) if self._is_wide else 0, self._dtype)
        type_count = len(types.types) + 1
        self._shape = (type_count, words) if self._is_wide else type_count
        self._accepted = [accepted_types(types, port.type) for port in self._ports]
        self._origins: dict[str | None, _Origin] = {None: self._origin(None)}
        self._groups = self._key_groups(correlation)

    def _origin(self, author: str | None) -> _Origin:
        """What the ports ask of rows of an author, or of those from outside."""
        by_type: Any = np.zeros(self._shape, self._dtype)
        tests: dict[int, list[Expression]] = {}
        for bit, port in enumerate(self._ports):
            if reads_outside(port) if author is None else author in rules_named(port):
                word = self._word(by_type, bit)
                word[self._accepted[bit]] |= self._dtype(1 << bit % WORD)
                tests[bit] = port_tests(port) if author is None else where_tests(port)
        return _Origin(by_type, tests)

    def _key_groups(self, correlation: Correlation) -> list[tuple[tuple[str, ...], int]]:
        """For each list of key names: the names, and the bits of the ports that ask for them."""
        groups: dict[tuple[str, ...], int] = {}
        for bit, port in enumerate(self._ports):
            names = key_names(correlation, port)
            groups[names] = groups.get(names, 0) | 1 << bit
        return list(groups.items())

    def match(self, batch: Batch, keys: Keys, author: str | None = None) -> Matches:
        origin = self._origins.get(author)
        if origin is None:
            origin = self._origins[author] = self._origin(author)
        bits = origin.by_type[batch.type_codes]
        for bit, tests in origin.tests.items():
            for test in tests:
                held = batch.holds(test, partial(batch.rows_of_types, self._accepted[bit]))
                self._keep(bits, bit, held)
        rows = np.flatnonzero(bits.any(axis=1) if self._is_wide else bits != 0)
        if not rows.size:
            return Matches(rows, self.no_bits, np.empty(0, np.int32), 0)
        read = bits if rows.size == len(bits) else bits[rows]
        if not keys.keyed:
            found = Matches(rows, read, np.zeros(rows.size, np.int32), 0)
        elif len(self._groups) == 1:
            found = self._by_common_key(batch, keys, rows, read)
        else:
            found = self._by_port_keys(batch, keys, rows, read)
        return self._with_predicates(batch, found)

    def _keep(self, bits: Any, bit: int, held: Any) -> None:
        """Clear a bit in all rows for which a test does not hold."""
        one = self._dtype(1 << bit % WORD)
        word = self._word(bits, bit)
        word &= held.astype(self._dtype) * one | ~one

    def _word(self, bits: Any, bit: int) -> Any:
        """The numbers in which a bit is, to be changed in place."""
        return bits[:, bit // WORD] if self._is_wide else bits

    def _by_common_key(self, batch: Batch, keys: Keys, rows: Rows, bits: Any) -> Matches:
        columns = [batch.column(path_to(name)) for name in self._groups[0][0]]
        numbers = keys.number(columns, rows)
        if numbers.min() >= 0:
            return Matches(rows, bits, numbers, 0)
        there = numbers >= 0
        return Matches(rows[there], bits[there], numbers[there], int((~there).sum()))

    def _by_port_keys(self, batch: Batch, keys: Keys, rows: Rows, bits: Any) -> Matches:
        """Each group of ports has its own key; equal keys of one row are one reading."""
        every_row, every_bits, every_key = [], [], []
        for names, mask in self._groups:
            asked = np.flatnonzero(bits & self._dtype(mask))
            if asked.size:
                columns = [batch.column(path_to(name)) for name in names]
                numbers = keys.number(columns, rows[asked])
                there = numbers >= 0
                every_row.append(rows[asked][there])
                every_bits.append((bits & self._dtype(mask))[asked][there])
                every_key.append(numbers[there])
        row, bit, key = (np.concatenate(each) for each in (every_row, every_bits, every_key))
        order = np.lexsort((key, row))
        row, bit, key = row[order], bit[order], key[order]
        if not row.size:
            return Matches(row, bit, key.astype(np.int32), len(rows))
        first = np.flatnonzero(np.r_[True, (row[1:] != row[:-1]) | (key[1:] != key[:-1])])
        merged = np.bitwise_or.reduceat(bit, first)
        row, key = row[first], key[first]
        # The keys of a row are read in the order of their first ports: the lowest bit.
        lowest = merged & (~merged + self._dtype(1))
        order = np.lexsort((lowest, row))
        read = len(distinct(row))
        return Matches(row[order], merged[order], key[order].astype(np.int32), len(rows) - read)

    def _with_predicates(self, batch: Batch, found: Matches) -> Matches:
        if not self._predicates or not found.rows.size:
            return found
        wanted = partial(mask_of_rows, found.rows, len(batch))
        bits = found.bits.copy()
        for bit, predicate in enumerate(self._predicates, len(self._ports)):
            held = batch.holds(predicate, wanted)[found.rows]
            word = self._word(bits, bit)
            word |= held.astype(self._dtype) * self._dtype(1 << bit % WORD)
        return Matches(found.rows, bits, found.keys, found.without_key)


def gathered(matcher: Matcher, keys_of: Keys, segments: Sequence[Segment]) -> tuple[Gathered, int]:
    """The rows that are read of segments, in the order of the stream; how many have no key."""
    found = [(each, matcher.match(each.batch, keys_of, each.author)) for each in segments]
    missing = sum(matches.without_key for _, matches in found)
    found = [(segment, matches) for segment, matches in found if matches.rows.size]
    if not found:
        none = np.empty(0, np.int64)
        no_keys = np.empty(0, np.int32)
        nowhere = np.empty((0, 1), np.int64)
        return Gathered([], none, matcher.no_bits, no_keys, none, None, nowhere), missing
    rows = _concatenated([matches.rows for _, matches in found])
    bits = _concatenated([matches.bits for _, matches in found])
    keys = _concatenated([matches.keys for _, matches in found])
    times = _concatenated([s.batch.times[m.rows] for s, m in found])
    which = None
    positions = found[0][0].positions
    if len(found) > 1:
        positions = np.concatenate([s.positions[m.rows] for s, m in found])
        which = np.repeat(np.arange(len(found)), [m.rows.size for _, m in found])
        # Stable, for a row that is read under two keys has one position.
        order = np.lexsort(positions.T[::-1])
        rows, bits, keys, times, which = (each[order] for each in (rows, bits, keys, times, which))
        positions = positions[order]
    batches = [segment.batch for segment, _ in found]
    return Gathered(batches, rows, bits, keys, times, which, positions), missing


def _concatenated(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


@compiled
def _look_up(patterns: Any, numbers: Any, found: Any) -> Any:
    """Write the number of each pattern; returns the lowest, which is -1 if a pattern has none."""
    lowest = np.int32(0)
    for at in range(patterns.size):
        number = numbers[np.uint64(patterns[at])]
        found[at] = number
        lowest = min(lowest, number)
    return lowest


class SymbolNumbers:
    """Symbols of a rule's table for many rows at once, by the bits of the rows.

    Up to 16 bits are looked up in an array; more bits go through hash tables, word by word.
    """

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._known = np.empty(0, np.int32)
        self._hashed: list[IntegerNumbers] = []
        self._symbol_of_pattern: list[int] = []

    def of(self, bits: Any) -> Numbers:
        """The symbol of each row; a pattern of bits that is new gets a new symbol."""
        if bits.dtype.itemsize > 2:
            return self._of_many_bits(bits if bits.ndim == 2 else bits[:, None])
        if not self._known.size:
            self._known = np.full(np.iinfo(bits.dtype).max + 1, -1, np.int32)
        found = np.empty(len(bits), np.int32)
        if _look_up(bits, self._known, found) < 0:
            for pattern in distinct(bits).tolist():
                self._known[pattern] = self._symbols.number(pattern)
            _look_up(bits, self._known, found)
        return found

    def _of_many_bits(self, words: Any) -> Numbers:
        """Number the words of each row, and each pair of a word and what came before it."""
        found = np.zeros(len(words), np.int32)
        for place in range(words.shape[1]):
            if len(self._hashed) <= 2 * place:
                self._hashed += [IntegerNumbers(), IntegerNumbers()]
            of_word, of_pair = self._hashed[2 * place : 2 * place + 2]
            one = of_word.number(words[:, place].astype(np.int64))
            found = of_pair.number(found.astype(np.int64) << 32 | one)
        known = len(self._symbol_of_pattern)
        if found.size and int(found.max()) >= known:
            # Written from the end, so that the first row of each number is what stays.
            first = np.empty(1 + int(found.max()), np.int64)
            first[found[::-1]] = np.arange(len(found) - 1, -1, -1)
            for row in first[known:].tolist():
                pattern = sum(int(word) << 64 * n for n, word in enumerate(words[row]))
                self._symbol_of_pattern.append(self._symbols.number(pattern))
        return np.array(self._symbol_of_pattern, np.int32)[found]


def why_not_matched(correlation: Correlation, machine: Machine) -> str | None:
    """Why columns cannot say which rows a correlation reads; None if they can."""
    tests = sum(isinstance(atom, PredicateAtom) for atom in machine.atoms)
    common = all(isinstance(key, CommonKey) for key in correlation.clauses.by)
    if len(correlation.ports) + tests > WORD and not common:
        return f"it has more than {WORD} ports and predicates, and ports with keys of their own"
    return None


def port_tests(port: EventPort) -> list[Expression]:
    """The tests that an event from outside has to pass besides its type: source and predicate."""
    source = source_test(port)
    tests: list[Expression] = [] if source is None else [source]
    return tests + where_tests(port)


def where_tests(port: EventPort) -> list[Expression]:
    return [] if port.where is None else _conjuncts(port.where)


def _conjuncts(predicate: Expression) -> list[Expression]:
    """The conjuncts of a predicate, as tests that other ports may share; else the predicate.

    Conjuncts are split only where they can be nothing but true or false: `AND` would cast others.
    """
    match predicate:
        case Logic(operands, operators) if set(operators) == {"AND"}:
            if all(isinstance(each, Comparison | Like | In | Exists) for each in operands):
                return list(operands)
    return [predicate]
