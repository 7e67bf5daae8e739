"""Which rows of a batch each of many ports wants, as lists of rows.

In come ports, of any number of correlations; out go, for each port, the number of its list, and for
each batch the lists. Ports with equal types and tests share a list, so that a rule costs as much as
the rows that it reads, and its predicates nothing if another rule has them too. Predicates that
compare one name with different texts (`kind = 'a'`, `kind = 'b'`) are evaluated together, in one
pass over the name's values; further tests of such a port are made on the rows of its text alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.batches import Batch, accepted_types
from ensue.engine.batch.input.column import Mask, marked
from ensue.engine.batch.input.keys import TextNumbers
from ensue.engine.batch.input.matching import port_tests
from ensue.engine.batch.kernels import row_combinations
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
        rows = rows[batch.holds(test, partial(marked, rows, len(batch)))[rows]]
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
    rows, begins = row_combinations.rows_by_code(codes, len(texts))
    return {
        number: rows[begins[code] : begins[code + 1]]
        for code, numbers in enumerate(texts.values())
        for number in numbers
    }
