"""Typed columns from the values of one name, as a parser has found them.

In come the values in one of three forms: an Arrow column that a parser has typed (`ArrowFound`),
Python values (`PythonFound`), or cells of text (`TextFound`). Out go a column of a declared type,
and the rows whose value it does not have. A value in a column is exactly what `conformance` and
`columns.convert_text` make of it; rows with other values are read singly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ensue.events.arrow_types import arrow_type
from ensue.events.conformance import LARGEST_EXACT
from ensue.events.files.chunk import Mask, Rows
from ensue.events.mapping.instants import (
    TIME,
    ReadInstants,
    instants_in,
    null_rows,
    whole_numbers_in,
)
from ensue.events.mapping.years import Years
from ensue.events.time_patterns import is_pattern
from ensue.events.types import ValueType

_REAL = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Typed(NamedTuple):
    """A column; `unread` are the rows with a value that the column does not have."""

    column: pa.Array
    unread: Mask


class Found(Protocol):
    """The values of one name in the rows of a block."""

    @property
    def present(self) -> Mask:
        """The rows with a value that is not null."""

    @property
    def is_nested(self) -> Mask:
        """The rows with an object or an array."""

    @property
    def is_object(self) -> Mask:
        """The rows with an object."""

    @property
    def absent(self) -> Mask | None:
        """The rows without the name; None if they cannot be told from those with a null."""

    def texts(self) -> Typed:
        """The values as a column of text."""

    def identities(self) -> Typed:
        """As `texts`; an integer counts as its text."""

    def typed(self, type_: ValueType, zone: ZoneInfo | None) -> Typed:
        """The column of an attribute of a type."""

    def keeps(self, type_: ValueType) -> bool:
        """Whether a column of a type has the values as they were given."""

    def times(
        self,
        unit: str | None,
        zone: ZoneInfo | None,
        years: Years | None = None,
        near: Rows | None = None,
    ) -> Typed:
        """Times from RFC 3339 text, from text of a pattern, or from numbers in a unit.

        `years` finds the years that times of a pattern lack, and `near` are the times of rows that
        are read again.
        """


def none_of(count: int) -> Mask:
    return np.zeros(count, np.bool_)


def times_in(
    column: pa.Array,
    unread: Mask,
    unit: str | None,
    zone: ZoneInfo | None,
    years: Years | None = None,
    near: Rows | None = None,
) -> Typed:
    """Times in a column, with the arguments of `Found.times`; others are `unread`."""
    if is_pattern(unit):
        return _timed(instants_in(column, unit, zone, years, near), unread)
    # A number in a unit has no zone.
    return _timed(instants_in(column, unit, None if unit else zone), unread)


def _timed(found: ReadInstants, unread: Mask) -> Typed:
    """Instants as a column; rows that are `unread` have none."""
    unread = unread | found.unread
    gone = unread | found.missing
    held = pa.array(found.values, pa.int64(), mask=gone if gone.any() else None)
    return Typed(held.cast(TIME), unread)


class ArrowFound:
    """A column of a parser: of text, 64-bit integers, doubles, booleans, or of nested values."""

    absent: Mask | None = None

    def __init__(self, column: pa.Array) -> None:
        self.column = column

    @cached_property
    def present(self) -> Mask:
        return ~null_rows(self.column)

    @property
    def is_nested(self) -> Mask:
        return self.present if pa.types.is_nested(self.column.type) else none_of(len(self.column))

    @property
    def is_object(self) -> Mask:
        return self.present if pa.types.is_struct(self.column.type) else none_of(len(self.column))

    def texts(self) -> Typed:
        if pa.types.is_string(self.column.type):
            return Typed(self.column, none_of(len(self.column)))
        return Typed(pa.nulls(len(self.column), pa.string()), self.present)

    def identities(self) -> Typed:
        if pa.types.is_integer(self.column.type):
            return Typed(self.column.cast(pa.string()), none_of(len(self.column)))
        return self.texts()

    def typed(self, type_: ValueType, zone: ZoneInfo | None) -> Typed:
        wanted, given = arrow_type(type_), self.column.type
        if pa.types.is_null(given):
            return Typed(pa.nulls(len(self.column), wanted), none_of(len(self.column)))
        if type_.kind == "timestamp":
            return self.times(None, zone)
        if type_.kind == "integer" and pa.types.is_integer(given):
            # The range of integers is checked later, by their type.
            return Typed(self.column, none_of(len(self.column)))
        if type_.kind == "real" and pa.types.is_floating(given):
            return Typed(self.column, _odd_reals(self.column))
        if wanted == given:
            return Typed(self.column, none_of(len(self.column)))
        return Typed(pa.nulls(len(self.column), wanted), self.present)

    def keeps(self, type_: ValueType) -> bool:
        return type_.kind in ("string", "boolean", "integer")

    def times(
        self,
        unit: str | None,
        zone: ZoneInfo | None,
        years: Years | None = None,
        near: Rows | None = None,
    ) -> Typed:
        given = self.column.type
        if is_pattern(unit):
            return times_in(*self.identities(), unit, zone, years, near)
        if unit is None and not pa.types.is_string(given) and not pa.types.is_null(given):
            return Typed(pa.nulls(len(self.column), TIME), self.present)
        if unit is not None and pa.types.is_boolean(given):
            return Typed(pa.nulls(len(self.column), TIME), self.present)
        found = instants_in(self.column, unit, None if unit else zone)
        unread = none_of(len(self.column))
        if pa.types.is_floating(given):
            # An integer among the reals is exact as a double only up to here.
            unread = np.abs(found.values) > LARGEST_EXACT
            unread |= self.present & (unit == "ns")
        return _timed(found, unread)


def _odd_reals(column: pa.Array) -> Mask:
    """The rows whose double may be another number: none at all, or a zero with a sign."""
    values = column.fill_null(1.0).to_numpy(zero_copy_only=False)
    odd: Mask = ~np.isfinite(values)
    zeros = values == 0.0
    return odd | (zeros & np.signbit(values)) if zeros.any() else odd


class PythonFound:
    """Values as a decoder of JSON makes them; `is_absent` tells of a row without one."""

    def __init__(self, values: list[Any], is_absent: Callable[[int], bool]) -> None:
        self._values = values
        self._is_absent = is_absent
        self._kinds = set(map(type, values))

    @cached_property
    def present(self) -> Mask:
        if type(None) not in self._kinds:
            return np.ones(len(self._values), np.bool_)
        return np.array([each is not None for each in self._values], np.bool_)

    @cached_property
    def absent(self) -> Mask:
        found = none_of(len(self._values))
        if type(None) in self._kinds:
            for row in np.flatnonzero(~self.present).tolist():
                found[row] = self._is_absent(row)
        return found

    @property
    def is_nested(self) -> Mask:
        return self._of(dict, list)

    @property
    def is_object(self) -> Mask:
        return self._of(dict)

    def _of(self, *kinds: type) -> Mask:
        """The rows with values of some types."""
        wanted = self._kinds.intersection(kinds)
        if not wanted:
            return none_of(len(self._values))
        if wanted == self._kinds:
            return np.ones(len(self._values), np.bool_)
        return np.array([type(each) in wanted for each in self._values], np.bool_)

    def _held(self, type_: pa.DataType, *kinds: type) -> Typed:
        """The values of some types as a column."""
        if self._kinds <= {*kinds, type(None)}:
            return Typed(pa.array(self._values, type_), none_of(len(self._values)))
        values = [each if type(each) in kinds else None for each in self._values]
        return Typed(pa.array(values, type_), self.present & ~self._of(*kinds))

    def texts(self) -> Typed:
        return self._held(pa.string(), str)

    def identities(self) -> Typed:
        if int not in self._kinds:
            return self.texts()
        values = [str(each) if type(each) is int else each for each in self._values]
        return PythonFound(values, self._is_absent).texts()

    def typed(self, type_: ValueType, zone: ZoneInfo | None) -> Typed:
        match type_.kind:
            case "integer":
                return self._whole_numbers()
            case "real":
                return self._reals()
            case "boolean":
                return self._held(pa.bool_(), bool)
            case "timestamp":
                return self.times(None, zone)
            case _:
                return self.texts()

    def keeps(self, type_: ValueType) -> bool:
        if type_.kind == "integer":
            return float not in self._kinds
        return type_.kind in ("string", "boolean") or (
            type_.kind == "real" and int not in self._kinds
        )

    def _whole_numbers(self) -> Typed:
        values = self._values
        if float in self._kinds:
            values = [
                int(each)
                if type(each) is float and each.is_integer() and abs(each) <= LARGEST_EXACT
                else each
                for each in values
            ]
        try:
            return PythonFound(values, self._is_absent)._held(pa.int64(), int)
        except (OverflowError, pa.ArrowInvalid):
            held = [
                each if type(each) is int and _SMALLEST <= each <= _LARGEST else None
                for each in values
            ]
            column = pa.array(held, pa.int64())
            return Typed(column, self.present & null_rows(column))

    def _reals(self) -> Typed:
        if int not in self._kinds:
            return self._held(pa.float64(), float)
        values = [_as_real(each) for each in self._values]
        column = pa.array(values, pa.float64())
        return Typed(column, self.present & null_rows(column))

    def times(
        self,
        unit: str | None,
        zone: ZoneInfo | None,
        years: Years | None = None,
        near: Rows | None = None,
    ) -> Typed:
        if is_pattern(unit):
            column, unread = self.identities()
        elif unit is None or self._kinds <= {str, type(None)}:
            column, unread = self.texts()
        elif self._kinds <= {int, type(None)}:
            column, unread = self._whole_numbers()
        else:
            # Numbers of several kinds: as the text of each, which is exact.
            values = [_written(each) for each in self._values]
            column = pa.array(values, pa.string())
            unread = self.present & null_rows(column)
        return times_in(column, unread, unit, zone, years, near)


def _as_real(value: Any) -> float | None:
    if type(value) is float:
        return value
    try:
        return float(value) if type(value) is int else None
    except OverflowError:
        return None


def _written(value: Any) -> str | None:
    if type(value) is str:
        return value
    return repr(value) if type(value) in (int, float) else None


class TextFound:
    """Cells of text; an empty cell is null."""

    absent: Mask | None = None

    def __init__(self, cells: pa.Array, nulls: Collection[str] = ()) -> None:
        """`nulls` are the texts that stand for a null beside the empty cell."""
        self._cells = cells
        self._nulls = nulls

    @cached_property
    def column(self) -> pa.Array:
        """The cells with nulls for empty ones."""
        if not self._cells.null_count and bool(self._is_filled.all()):
            return self._cells
        return pc.if_else(pa.array(self._is_filled), self._cells, pa.scalar(None, pa.string()))

    @cached_property
    def _is_filled(self) -> Mask:
        lengths = pc.fill_null(pc.binary_length(self._cells), 0)
        is_filled: Mask = np.asarray(lengths) > 0
        if self._nulls:
            is_null = pc.is_in(self._cells, pa.array(self._nulls, pa.string()))
            is_filled &= ~np.asarray(is_null)
        return is_filled

    @property
    def present(self) -> Mask:
        return self._is_filled

    def texts(self) -> Typed:
        return Typed(self.column, none_of(len(self._cells)))

    def typed(self, type_: ValueType, zone: ZoneInfo | None) -> Typed:
        match type_.kind:
            case "integer":
                return self._whole_numbers()
            case "real":
                return self._reals()
            case "boolean":
                return self._booleans()
            case "timestamp":
                return self.times(None, zone)
            case _:
                return self.texts()

    def keeps(self, type_: ValueType) -> bool:
        return type_.kind == "string"

    def times(
        self,
        unit: str | None,
        zone: ZoneInfo | None,
        years: Years | None = None,
        near: Rows | None = None,
    ) -> Typed:
        return times_in(*self.texts(), unit, zone, years, near)

    def _whole_numbers(self) -> Typed:
        values, ok = whole_numbers_in(self.column)
        return Typed(pa.array(values, mask=~ok), self.present & ~ok)

    def _reals(self) -> Typed:
        try:
            return Typed(self.column.cast(pa.float64()), none_of(len(self.column)))
        except pa.ArrowInvalid:
            matches = pc.fill_null(pc.match_substring_regex(self.column, _REAL), False)
            kept = pc.if_else(matches, self.column, pa.scalar(None, pa.string()))
            return Typed(kept.cast(pa.float64()), self.present & ~np.asarray(matches))

    def _booleans(self) -> Typed:
        lowered = pc.ascii_lower(self.column)
        true = np.asarray(pc.fill_null(pc.equal(lowered, "true"), False))
        ok = true | np.asarray(pc.fill_null(pc.equal(lowered, "false"), False))
        return Typed(pa.array(true, mask=~ok), self.present & ~ok)
