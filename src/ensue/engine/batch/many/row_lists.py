"""Which rows of a batch each of many ports wants, as lists of rows, and the rules of each row.

In come ports, of any number of correlations; out go, for each port, the number of its list, and for
each batch the lists. Ports with equal types and tests share a list, so that a rule costs as much as
the rows that it reads, and its predicates nothing if another rule has them too. Predicates that
compare one name with different texts (`kind = 'a'`, `kind = 'b'`) are evaluated together, in one
pass over the name's values; further tests of such a port are made on the rows of its text alone.

The compiled loops below turn the lists round: they number the *combinations* of lists that rows are
in, and list for each combination the rules that read it, each with its letter (`visits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from llvmlite import ir
from numba import types

from ensue.engine.batch.input.batches import Batch, accepted_types
from ensue.engine.batch.input.column import mask_of_rows
from ensue.engine.batch.input.keys import TextNumbers
from ensue.engine.batch.input.matching import port_tests
from ensue.engine.core.jit import compiled, lowered
from ensue.engine.core.numbering import MULTIPLIER, Mask
from ensue.events.types import TypeSystem
from ensue.lang.expressions.names import Parts
from ensue.lang.expressions.tree import Comparison, Expression, Literal, Name
from ensue.lang.syntax import EventPort

RowNumbers = npt.NDArray[np.int32]
_Wanted = tuple[str, tuple[Expression, ...]]
_FEWEST_TEXTS = 4
"""For fewer texts than this, one comparison for each text is as quick."""


class RowLists:
    """The row lists of many ports; ports with equal types and tests share one."""

    def __init__(self, types: TypeSystem) -> None:
        self._types = types
        self._numbers: dict[_Wanted, int] = {}
        self._accepted: dict[str, npt.NDArray[np.bool_]] = {}
        self._texts: dict[Parts, dict[str, list[int]]] = {}
        # What is asked of the rows of a text besides.
        self._others: dict[int, tuple[Expression, ...]] = {}

    @property
    def count(self) -> int:
        return len(self._numbers)

    def number(self, port: EventPort) -> int:
        """The number of the list of a port."""
        wanted = (port.type, tuple(port_tests(port)))
        if wanted not in self._numbers:
            number = self._numbers[wanted] = len(self._numbers)
            for place, test in enumerate(wanted[1]):
                match test:
                    case Comparison(Name(parts), (("=", Literal(str(text))),)):
                        self._texts.setdefault(parts, {}).setdefault(text, []).append(number)
                        self._others[number] = wanted[1][:place] + wanted[1][place + 1 :]
                        break
        return self._numbers[wanted]

    def _rows_of_type(self, batch: Batch, name: str) -> Mask:
        if name not in self._accepted:
            self._accepted[name] = accepted_types(self._types, name)
        return batch.rows_of_types(self._accepted[name])

    def of(self, batch: Batch) -> Sequence[RowNumbers]:
        """The rows of each list, in their order."""
        of_type = {
            name: self._rows_of_type(batch, name)
            for name in dict.fromkeys(name for name, _ in self._numbers)
        }
        whole = {name: bool(mask.all()) for name, mask in of_type.items()}
        by_text: dict[int, RowNumbers] = {}
        for parts, texts in self._texts.items():
            if len(texts) >= _FEWEST_TEXTS:
                by_text |= _rows_by_text(batch, parts, texts)
        found = []
        for number, (name, tests) in enumerate(self._numbers):
            if number in by_text:
                rows = by_text[number]
                rows = rows if whole[name] else rows[of_type[name][rows]]
                found.append(_narrowed(batch, rows, self._others[number]))
                continue
            mask = of_type[name]
            for test in tests:
                mask = mask & batch.holds(test, mask.copy)
            found.append(np.flatnonzero(mask).astype(np.int32))
        return found


def _narrowed(batch: Batch, rows: RowNumbers, tests: Sequence[Expression]) -> RowNumbers:
    """The rows for which all tests hold."""
    for test in tests:
        rows = rows[batch.holds(test, partial(mask_of_rows, rows, len(batch)))[rows]]
    return rows


def _rows_by_text(batch: Batch, parts: Parts, texts: dict[str, list[int]]) -> dict[int, RowNumbers]:
    """The rows in which a name is a text, for several texts; nothing if it is no string there."""
    column = batch.column(parts)
    if column.kind != "string" or not len(column):
        return {}
    known = TextNumbers()
    known.number(pa.array(list(texts), pa.string()))
    codes: Any = known.number(column.values, grow=False)
    if column.missing is not None:
        codes[column.missing] = -1
    rows, begins = rows_by_code(codes, len(texts))
    return {
        number: rows[begins[code] : begins[code + 1]]
        for code, numbers in enumerate(texts.values())
        for number in numbers
    }


_ONE = np.uint64(1)


@lowered
def lowest(typing_context: Any, word: Any) -> Any:  # noqa: ARG001
    """The number of the lowest bit of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@compiled
def mark_rows(marks: Any, rows: Any, number: int) -> None:
    """Note for each of the rows that it is in the list of this number."""
    word = number >> 6
    bit = _ONE << np.uint64(number & 63)
    for at in range(rows.size):
        marks[rows[at], word] |= bit


@compiled
def number_marks(
    marks: Any, first: int, out: Any, slots: Any, known: Any, hashes: Any, count: int
) -> Any:
    """Number the combinations of lists that rows are in; -1 is in none. Stops where they are full.

    `slots` has at least twice as many places as `known`, and a power of two of them.
    """
    mask = np.uint64(slots.size - 1)
    words = marks.shape[1]
    for row in range(first, out.size):
        mixed = np.uint64(0)
        found_any = np.uint64(0)
        for word in range(words):
            held = marks[row, word]
            found_any |= held
            mixed = (mixed ^ held) * MULTIPLIER
            mixed ^= mixed >> np.uint64(29)
        if found_any == 0:
            out[row] = -1
            continue
        slot = (mixed ^ (mixed >> np.uint64(32))) & mask
        number = -1
        while slots[slot] != 0:
            candidate = slots[slot] - 1
            if hashes[candidate] == mixed:
                same = True
                for word in range(words):
                    same &= known[candidate, word] == marks[row, word]
                if same:
                    number = candidate
                    break
            slot = (slot + _ONE) & mask
        if number < 0:
            if count == known.shape[0]:
                return row, count
            for word in range(words):
                known[count, word] = marks[row, word]
            hashes[count] = mixed
            slots[slot] = count + 1
            number = count
            count += 1
        out[row] = number
    return out.size, count


@compiled
def list_visits(
    known: Any, done: int, count: int, reader_from: Any, readers: Any, letters: Any, visits: Any
) -> int:
    """List the rules that read each combination from `done` on, and the letter each of them reads.

    A list of rows has readers: a rule and one of its ports each. `letters` has room for one letter
    a rule. Stops where `visits` has no room for all rules.
    """
    begins, rules, read = visits
    for number in range(done, count):
        at = begins[number]
        if at + letters.size > rules.size:
            return number
        letters[:] = 0
        for word in range(known.shape[1]):
            left = known[number, word]
            while left != 0:
                each = (word << 6) + np.int64(lowest(left))
                left &= left - _ONE
                for reader in range(reader_from[each], reader_from[each + 1]):
                    letters[readers[reader, 0]] |= np.uint8(1 << readers[reader, 1])
        for rule in range(letters.size):
            if letters[rule] != 0:
                rules[at] = rule
                read[at] = letters[rule]
                at += 1
        begins[number + 1] = at
    return count


@compiled
def count_without_key(
    combinations: Any, keys: Any, first: int, end: int, begins: Any, rules: Any, counts: Any
) -> None:
    """Count for each rule the rows that it would read, if they had a key."""
    for row in range(first, end):
        if keys[row] < 0 and combinations[row] >= 0:
            for visit in range(begins[combinations[row]], begins[combinations[row] + 1]):
                counts[rules[visit]] += 1


@compiled
def rows_by_code(codes: Any, count: int) -> Any:
    """The rows of each code, one code after the other, and where each code begins.

    Rows of one code keep their order; a row of code -1 is left out.
    """
    begins = np.zeros(count + 1, np.int64)
    for row in range(codes.size):
        if codes[row] >= 0:
            begins[codes[row] + 1] += 1
    for code in range(count):
        begins[code + 1] += begins[code]
    at = begins.copy()
    rows = np.empty(begins[count], np.int32)
    for row in range(codes.size):
        code = codes[row]
        if code >= 0:
            rows[at[code]] = row
            at[code] += 1
    return rows, begins
