"""The values that aggregates ask of events, as numbers of 64 bits in the store of events.

In come readings by number, with their letters; out go the values of each aggregate in the rows of
the store: numbers as they are, values of `distinct` as small numbers of their own. What loops
cannot compute with (values that are no finite numbers, or of another kind than declared) raises
`LeavesColumnsError` before anything has changed. A sum of reals has as many limbs as the values so
far need (`powers`); values that need more are noticed when they are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.column import Column, column_of
from ensue.engine.batch.input.keys import TextNumbers
from ensue.engine.batch.related.port_aggregates import PRESENT, VALUES
from ensue.engine.batch.related.sums import Powers
from ensue.engine.core.numbering import IntegerNumbers, Rows
from ensue.engine.core.relating.form import ChainForm
from ensue.engine.core.relating.tallies import SavedTallies
from ensue.lang.expressions.names import Parts

SUMS = ("SUM", "AVG")
"""The functions that keep a sum."""


class LeavesColumnsError(Exception):
    """A rule cannot go on in columns; the text says why. Nothing has been read."""


class AggregatedValues:
    """The values of all aggregates of one rule.

    `bit_of` gives the bit of a port, `column` the values of a name for readings by number. By the
    number of an aggregate, `value_at` has the column of its value in a row of the store, and
    `queue_at` the first of the two columns of its queue.
    """

    def __init__(
        self, form: ChainForm, bit_of: Callable[[str], int], column: Callable[[Parts, Rows], Column]
    ) -> None:
        self._form = form
        self._bit_of = bit_of
        self._column = column
        functions = [each.function for each in form.aggregates]
        valued = [n for n, function in enumerate(functions) if function != "COUNT"]
        queued = [n for n in valued if functions[n] not in SUMS]
        self.distinct = [n for n, function in enumerate(functions) if function == "DISTINCT"]
        """The numbers of the aggregates that count different values."""
        self.value_at = {number: VALUES + place for place, number in enumerate(valued)}
        first = VALUES + len(valued)
        self.queue_at = {number: first + 2 * place for place, number in enumerate(queued)}
        self.width = first + 2 * len(queued)
        self.powers = [Powers() for _ in functions]
        self._checked: list[Column] = []
        self.clear()

    def clear(self) -> None:
        """Forget the numbers of different values."""
        self._texts = {number: TextNumbers() for number in self.distinct}
        self._numbers = {number: IntegerNumbers() for number in self.distinct}

    def check(self, readings: Rows, letters: Any) -> None:
        """See whether readings can be aggregated; raises `LeavesColumnsError`.

        If `is_outgrown` then, the caller has to `widen` sums and let all events be read again.
        """
        condition = self._form.condition
        for (port, *path), kind in (condition.names if condition else {}).items():
            self._values(port, tuple(path), kind, readings, letters)
        self._checked = [
            self._values(each.port, each.name, each.kind, readings, letters)
            if each.name
            else Column("integer", np.zeros(readings.size, np.int64))
            for each in self._form.aggregates
        ]
        self._wider = [
            powers.including(column.values[~column.missing_mask()])
            if each.function in SUMS and each.kind == "real"
            else powers
            for each, powers, column in zip(
                self._form.aggregates, self.powers, self._checked, strict=True
            )
        ]

    @property
    def is_outgrown(self) -> bool:
        """Whether the values that were checked last need sums with more limbs."""
        return any(
            wider.is_known and wider != powers
            for powers, wider in zip(self.powers, self._wider, strict=True)
        )

    def widen(self) -> None:
        self.powers = self._wider

    def widen_for(self, saved: Iterable[SavedTallies]) -> None:
        """Have room for sums that were saved. Raises `LeavesColumnsError`, `ValueError`."""
        asked = self._form.aggregates
        numbers = [n for n, each in enumerate(asked) if each.function == "SUM"]
        for tallies in saved:
            if not tallies.fit(self._form.counted, numbers):
                raise ValueError
            for number, each in tallies.sums.items():
                is_real = asked[number].kind == "real"
                if each.fault or (each.whole if is_real else each.reals or each.fraction):
                    raise LeavesColumnsError("it sums values that are not what was declared")
                if each.fraction:
                    self.powers[number] = self.powers[number].holding(
                        each.power, each.power + each.numerator.bit_length()
                    )

    def write(self, rows: npt.NDArray[np.int64]) -> None:
        """Write the values of the readings that were checked last to their rows."""
        present: Any = np.int64(0)
        for number, at in self.value_at.items():
            column = self._checked[number]
            rows[:, at] = self._as_integers(number, column)
            bit = np.int64(1 << number)
            present = present | (bit if column.missing is None else ~column.missing * bit)
        rows[:, PRESENT] = present
        self._checked = []

    def _as_integers(self, number: int, column: Column) -> Any:
        """The values of an aggregate; reals by their bits."""
        values = column.values
        if number in self._texts:
            if column.missing is not None and column.missing.all():
                return 0
            if column.kind == "string":
                found = self._texts[number].number(values)
            else:
                # Both zeros are one value.
                plain = (values + 0.0).view(np.int64) if column.kind == "real" else values
                found = self._numbers[number].number(np.ascontiguousarray(plain).astype(np.int64))
            return found.astype(np.int64) * len(self.distinct) + self.distinct.index(number)
        if column.kind == "real":
            return np.ascontiguousarray(values, np.float64).view(np.int64)
        return values

    def _values(self, port: str, name: Parts, kind: str, readings: Rows, letters: Any) -> Column:
        """The values of a name for the readings of a port; missing for all other readings."""
        bit = np.uint64(self._bit_of(port))
        is_here = (letters >> bit & np.uint64(1)).astype(np.bool_)
        if is_here.all():
            return _of_kind(self._column(name, readings), name, kind)
        zeros = np.zeros(readings.size, np.float64 if kind == "real" else np.int64)
        if not is_here.any():
            return Column(kind, zeros, ~is_here)
        here = np.flatnonzero(is_here)
        column = _of_kind(self._column(name, readings[here]), name, kind)
        missing = ~is_here
        missing[here] = column.missing_mask()
        if kind == "string":
            places = np.zeros(readings.size, np.int64)
            places[here] = np.arange(here.size)
            return Column(kind, column.take(places).values, missing)
        zeros[here] = column.values
        return Column(kind, zeros, missing)


def _of_kind(column: Column, name: Parts, kind: str) -> Column:
    """A column of a kind, with finite numbers only. Raises `LeavesColumnsError`."""
    if column.kind == "object":
        column = column_of(column.to_list())
    if column.missing is not None and column.missing.all():
        if kind == "string":
            return Column(kind, pa.array([""] * len(column), pa.string()), column.missing)
        zeros = np.zeros(len(column), np.float64 if kind == "real" else np.int64)
        return Column(kind, zeros, column.missing)
    if column.kind != kind:
        raise LeavesColumnsError(f"`{'.'.join(name)}` is not what was declared")
    if kind == "real":
        there = column.values if column.missing is None else column.values[~column.missing]
        if not np.isfinite(there).all():
            raise LeavesColumnsError(f"`{'.'.join(name)}` is no finite number")
    return column
